-- SPDX-License-Identifier: Apache-2.0
-- The short way of a batch: grants, renewals and releases on rows on which nothing else is, of which
-- there is one for each entry at most. Entries without a row in the answer have not happened, and
-- lease_execute_1 (schema.sql) is to be asked. For sessions that are set up and keep it prepared.
--
-- $1 verbs (1 acquire, 2 renew, 3 release), $2 keys, in their order, $3 holders, $4 ttls, $5 fences,
-- $6 floors, $7 1: attached, $8 not after (or null); $9 process, $10 who. Answers which entry, the
-- time, and the fences; and in a row without an entry, which of them others wait for.
--
-- The clock is read before each row is locked. Whoever waits for one so long that this might matter is
-- undone (lease_ended_1), and nothing that is about to end is taken. The rows are locked in the order
-- of their keys, so that two batches do not wait for each other; the subquery has the server look at
-- each key by the index, whatever it believes of the table.
WITH done AS (
    UPDATE {schema}.lease AS l
    SET fence = CASE WHEN e.verb = 1
            THEN greatest(n.now, l.fence + 1, ($6::pg_catalog.int8[])[e.n] + 1) ELSE l.fence END,
        capacity = CASE WHEN e.verb = 1 THEN 1 ELSE l.capacity END,
        fence_first = CASE e.verb
            WHEN 1 THEN greatest(
                greatest(n.now, l.fence + 1, ($6::pg_catalog.int8[])[e.n] + 1)
                    - ($5::pg_catalog.int8[])[e.n] + 1,
                l.fence + 1, ($6::pg_catalog.int8[])[e.n] + 1)
            WHEN 2 THEN l.fence_first END,
        fence_last = CASE e.verb
            WHEN 1 THEN greatest(n.now, l.fence + 1, ($6::pg_catalog.int8[])[e.n] + 1)
            WHEN 2 THEN l.fence_last END,
        holder = CASE WHEN e.verb < 3 THEN e.holder END,
        attached = CASE e.verb
            WHEN 1 THEN ($7::pg_catalog.int8[])[e.n] = 1 WHEN 2 THEN l.attached END,
        granted = CASE e.verb WHEN 1 THEN n.now WHEN 2 THEN l.granted END,
        expires = CASE WHEN e.verb < 3 THEN n.now + ($4::pg_catalog.int8[])[e.n] END,
        process = CASE e.verb WHEN 1 THEN $9::pg_catalog.text WHEN 2 THEN l.process END,
        who = CASE e.verb WHEN 1 THEN $10::pg_catalog.text WHEN 2 THEN l.who END
    FROM (SELECT {schema}.lease_now_1() AS now OFFSET 0) AS n,
         (SELECT a.*, (SELECT k.ctid FROM {schema}.lease k
                       WHERE k.key = a.key COLLATE "C") AS place
          FROM unnest($1::pg_catalog.int8[], $2::pg_catalog.text[], $3::pg_catalog.bytea[])
               WITH ORDINALITY AS a(verb, key, holder, n) OFFSET 0) AS e
    WHERE l.ctid = e.place AND NOT l.queued
      AND (l.value IS NULL OR l.value_keep_until <= n.now)
      AND CASE WHEN e.verb = 1
          THEN (l.holder IS NULL OR l.expires <= n.now) AND NOT l.shared
              AND l.blocked_until <= n.now AND l.fence < 9223372036854775807
              AND ($6::pg_catalog.int8[])[e.n] < 9223372036854775807
              AND coalesce(n.now + 100000 < ($8::pg_catalog.int8[])[e.n], true)
          ELSE l.holder = e.holder AND n.now + 100000 < l.expires END
    RETURNING e.n, e.verb, n.now, l.fence_first, l.fence_last)
SELECT d.n, d.now, d.fence_first, d.fence_last, NULL::pg_catalog.int8[] FROM done d
UNION ALL
SELECT NULL, NULL, NULL, NULL,
       {schema}.lease_ended_1(ARRAY(SELECT d.n FROM done d WHERE d.verb > 1),
                              $1::pg_catalog.int8[], $2::pg_catalog.text[],
                              (SELECT d.now + 100000 FROM done d LIMIT 1), $9::pg_catalog.text)
