-- SPDX-License-Identifier: Apache-2.0
-- The short way of a lone acquire: a grant on a row that is free, or expired, and on which nothing
-- else is. Without a row in the answer nothing has happened, and lease_execute_1 (schema.sql) is to
-- be asked. For sessions that are set up and keep it prepared.
--
-- $1 key, $2 holder, $3 ttl, $4 fences, $5 floor, $6 attached, $7 not after (or null), $8 process,
-- $9 who. Answers the time of the grant and its fences.
--
-- The clock is read before the row is locked, and again by whoever waited for a change of the row. What
-- is true of an earlier time is true of a later one, but for `not after`, which is looked at once more
-- when the row is written.
UPDATE {schema}.lease AS l
SET (fence, fence_first, fence_last, granted, expires) = (
        SELECT b.fence, greatest(b.fence - $4::pg_catalog.int8 + 1, l.fence + 1,
                                 $5::pg_catalog.int8 + 1),
               b.fence, b.now, b.now + $3::pg_catalog.int8
        FROM (SELECT t.now, greatest(t.now, l.fence + 1, $5::pg_catalog.int8 + 1) AS fence
              FROM (SELECT {schema}.lease_now_1() AS now OFFSET 0) AS t OFFSET 0) AS b),
    capacity = 1, holder = $2::pg_catalog.bytea, attached = $6::pg_catalog.bool,
    process = $8::pg_catalog.text, who = $9::pg_catalog.text
WHERE l.key = $1::pg_catalog.text COLLATE "C"
  AND (l.holder IS NULL OR l.expires <= {schema}.lease_now_1())
  AND (l.value IS NULL OR l.value_keep_until <= {schema}.lease_now_1())
  AND NOT l.queued AND NOT l.shared AND l.blocked_until <= {schema}.lease_now_1()
  AND l.fence < 9223372036854775807 AND $5::pg_catalog.int8 < 9223372036854775807
  AND ($7::pg_catalog.int8 IS NULL OR {schema}.lease_now_1() <= $7::pg_catalog.int8)
RETURNING l.granted, l.fence_first, l.fence_last,
    CASE WHEN $7::pg_catalog.int8 < {schema}.lease_now_1() THEN {schema}.lease_undo_1() END
