-- SPDX-License-Identifier: Apache-2.0
-- The short way of a lone acquire of a key that this session has no lock of: a grant on a row on which
-- nothing else is, when its lock is free. Where nothing has happened no row is answered, or one without
-- fences, and session_execute_1 (session.sql) is to be asked. For sessions that are set up and keep it
-- prepared.
--
-- $1 key, $2 holder, $3 fences, $4 floor, $5 not after (or null), $6 the number of the lock,
-- $7 session, $8 who. Answers the time of the grant and its fences.
--
-- The lock is tried for once, of a row that may be granted, whatever becomes of the row meanwhile: the
-- server looks at the conditions of an UPDATE again when somebody else has written the row. A lock
-- whose row turns out to be another one is given back. After an error it may be taken still, which is
-- for the client to mend (session.hpp).
--
-- The commit does not wait for the disk, as long as the fence is not ahead of the clock.
WITH tried AS MATERIALIZED (
    SELECT k.ctid AS place, n.now, pg_catalog.pg_try_advisory_lock($6::pg_catalog.int8) AS got
    FROM (SELECT {schema}.lease_now_1() AS now,
                 pg_catalog.set_config('synchronous_commit', 'off', true) AS bare,
                 pg_catalog.current_setting('dibs.session', true) = $7::pg_catalog.text AS own
          OFFSET 0) AS n,
         {schema}.lease AS k
    WHERE k.key = $1::pg_catalog.text COLLATE "C" AND n.own AND NOT k.queued
      AND (k.value IS NULL OR k.value_keep_until <= n.now) AND k.blocked_until <= n.now
      AND k.fence < n.now AND $4::pg_catalog.int8 < n.now
      AND ($5::pg_catalog.int8 IS NULL OR n.now <= $5::pg_catalog.int8)),
done AS (
    UPDATE {schema}.lease AS l
    SET fence = t.now,
        fence_first = greatest(t.now - $3::pg_catalog.int8 + 1, l.fence + 1,
                               $4::pg_catalog.int8 + 1),
        fence_last = t.now, granted = t.now, expires = 9223372036854775807,
        holder = $2::pg_catalog.bytea, attached = true, process = $7::pg_catalog.text,
        who = $8::pg_catalog.text
    FROM tried AS t
    WHERE t.got AND l.ctid = t.place AND NOT l.queued
      AND (l.value IS NULL OR l.value_keep_until <= t.now) AND l.blocked_until <= t.now
      AND l.fence < t.now
    RETURNING l.fence_first, l.fence_last)
SELECT t.now, d.fence_first, d.fence_last,
       CASE WHEN d.fence_last IS NULL THEN pg_catalog.pg_advisory_unlock($6::pg_catalog.int8)
            WHEN $5::pg_catalog.int8 < {schema}.lease_now_1() THEN {schema}.lease_undo_1() END
FROM tried AS t LEFT JOIN done AS d ON true
WHERE t.got
