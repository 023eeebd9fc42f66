-- SPDX-License-Identifier: Apache-2.0
-- The short way of a lone acquire: a grant on a row that is free, or expired, and on which nothing
-- else is. Without a row in the answer nothing has happened, and lease_execute_1 (schema.sql) is to
-- be asked. For sessions that are set up and keep it prepared.
--
-- $1 key, $2 holder, $3 ttl, $4 fences, $5 floor, $6 attached, $7 not after (or null), $8 process,
-- $9 who. Answers the time of the grant and its fences.
--
-- The clock is read once, before the row is locked; whoever waits for it waits for no longer than the
-- session's lock_timeout. What is true of an earlier time is true of a later one, and a grant that
-- counts from it ends the sooner; but for `not after`, which is looked at once more when the row is
-- written.
UPDATE {schema}.lease AS l
SET fence = greatest(n.now, l.fence + 1, $5::pg_catalog.int8 + 1),
    fence_first = greatest(
        greatest(n.now, l.fence + 1, $5::pg_catalog.int8 + 1) - $4::pg_catalog.int8 + 1,
        l.fence + 1, $5::pg_catalog.int8 + 1),
    fence_last = greatest(n.now, l.fence + 1, $5::pg_catalog.int8 + 1),
    granted = n.now, expires = n.now + $3::pg_catalog.int8,
    capacity = 1, holder = $2::pg_catalog.bytea, attached = $6::pg_catalog.bool,
    process = $8::pg_catalog.text, who = $9::pg_catalog.text
FROM (SELECT {schema}.lease_now_1() AS now OFFSET 0) AS n
WHERE l.key = $1::pg_catalog.text COLLATE "C"
  AND (l.holder IS NULL OR l.expires <= n.now)
  AND (l.value IS NULL OR l.value_keep_until <= n.now)
  AND NOT l.queued AND NOT l.shared AND l.blocked_until <= n.now
  AND l.fence < 9223372036854775807 AND $5::pg_catalog.int8 < 9223372036854775807
  AND ($7::pg_catalog.int8 IS NULL OR n.now <= $7::pg_catalog.int8)
RETURNING l.granted, l.fence_first, l.fence_last,
    CASE WHEN $7::pg_catalog.int8 < {schema}.lease_now_1() THEN {schema}.lease_undo_1() END
