-- SPDX-License-Identifier: Apache-2.0
-- The short way of a lone release: of a live exclusive grant, without a result, on a row on which
-- nothing else is. Without a row in the answer nothing has happened, and lease_execute_1 (schema.sql)
-- is to be asked. For sessions that are set up and keep it prepared.
--
-- The commit does not wait for the disk where the lease would end within a minute by itself: what
-- comes back when the server crashes is a grant of nobody, until its time is over, and no grant of the
-- key is acknowledged before what was written ahead of it is on the disk.
--
-- $1 key, $2 holder, $3 process. Answers the time, and whether another process waits for the key,
-- which is looked at once the row is written: whoever has registered before it looked at the key is
-- seen. So the volatile function looks, which sees all that is committed by then; the statement itself
-- sees what was before it.
UPDATE {schema}.lease AS l
SET holder = NULL, fence_first = NULL, fence_last = NULL, attached = NULL, granted = NULL,
    expires = NULL, process = NULL, who = NULL
FROM (SELECT {schema}.lease_now_1() AS now OFFSET 0) AS n
WHERE l.key = $1::pg_catalog.text COLLATE "C" AND l.holder = $2::pg_catalog.bytea
  AND {schema}.lease_now_1() < l.expires AND NOT l.queued
  AND (l.value IS NULL OR l.value_keep_until <= n.now)
  AND pg_catalog.set_config('synchronous_commit', CASE WHEN l.expires < n.now + 60000000
                                                      THEN 'off' ELSE 'on' END, true) IS NOT NULL
RETURNING n.now, {schema}.lease_released_1(l.key, $3::pg_catalog.text)
