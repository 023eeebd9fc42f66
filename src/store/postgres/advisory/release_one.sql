-- SPDX-License-Identifier: Apache-2.0
-- The short way of a lone release: of a grant of this session, without a result, on a row on which
-- nothing else is. Without a row in the answer nothing has happened, and session_execute_1
-- (session.sql) is to be asked. For sessions that are set up and keep it prepared.
--
-- $1 key, $2 holder, $3 the number of the lock, $4 process, $5 session. Answers the time; whether
-- another process waits for the key, which is looked at once the row is written (../release_one.sql);
-- and whether the lock was held, which is given back last of all.
--
-- The commit does not wait for the disk: a crash ends the session, and the lock with it.
UPDATE {schema}.lease AS l
SET holder = NULL, fence_first = NULL, fence_last = NULL, attached = NULL, granted = NULL,
    expires = NULL, process = NULL, who = NULL
FROM (SELECT {schema}.lease_now_1() AS now,
             pg_catalog.set_config('synchronous_commit', 'off', true) AS bare,
             pg_catalog.current_setting('dibs.session', true) = $5::pg_catalog.text AS own
      OFFSET 0) AS n
WHERE l.key = $1::pg_catalog.text COLLATE "C" AND n.own AND l.holder = $2::pg_catalog.bytea
  AND l.process = $5::pg_catalog.text AND l.expires = 9223372036854775807 AND NOT l.queued
  AND (l.value IS NULL OR l.value_keep_until <= n.now)
RETURNING n.now, {schema}.lease_released_1(l.key, $4::pg_catalog.text),
    pg_catalog.pg_advisory_unlock($3::pg_catalog.int8)
