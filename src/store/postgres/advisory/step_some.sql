-- SPDX-License-Identifier: Apache-2.0
-- The short way of a batch: grants of keys that this session has no lock of, and renewals and releases
-- of its own, on rows on which nothing else is, of which there is one for each entry at most.
-- Entries that the answer does not name have not happened, and session_execute_1 (session.sql) is to
-- be asked. For sessions that are set up and keep it prepared.
--
-- $1 verbs (1 acquire, 2 renew, 3 release), $2 keys, in their order, $3 holders, $4 fences, $5 floors,
-- $6 not after (or null), $7 the numbers of the locks, no two alike; $8 process, $9 session, $10 who.
-- Answers one row: the time; which entries, and their fences; which of them others wait for; and those
-- whose lock was not held when it was given back.
--
-- Each lock is tried for once, as in acquire_one.sql; what is not granted after all is given back at
-- the end. The rows are written in the order of their keys, so that two batches do not wait for each
-- other; the subquery has the server look at each key by the index, whatever it believes of the table.
-- The clock is read before the rows are locked: see ../step_some.sql.
WITH tried AS MATERIALIZED (
    SELECT e.*, k.place, k.fence_first, k.fence_last, n.now,
           CASE WHEN e.verb = 1 THEN pg_catalog.pg_try_advisory_lock(e.lock) ELSE true END AS got
    FROM (SELECT {schema}.lease_now_1() AS now,
                 pg_catalog.set_config('synchronous_commit', 'off', true) AS bare,
                 pg_catalog.current_setting('dibs.session', true) = $9::pg_catalog.text AS own
          OFFSET 0) AS n,
         unnest($1::pg_catalog.int8[], $2::pg_catalog.text[], $3::pg_catalog.bytea[],
                $7::pg_catalog.int8[]) WITH ORDINALITY AS e(verb, key, holder, lock, n)
         LEFT JOIN LATERAL (
             SELECT l.ctid AS place, l.* FROM {schema}.lease AS l
             WHERE l.key = e.key COLLATE "C" OFFSET 0) AS k ON true
    WHERE n.own
      AND (k.place IS NULL OR NOT k.queued AND (k.value IS NULL OR k.value_keep_until <= n.now))
      AND CASE WHEN e.verb = 1
          THEN (k.place IS NULL OR k.blocked_until <= n.now AND k.fence < n.now)
              AND ($5::pg_catalog.int8[])[e.n] < n.now
              AND coalesce(n.now + 100000 < ($6::pg_catalog.int8[])[e.n], true)
          ELSE k.holder = e.holder AND k.process = $9::pg_catalog.text
              AND k.expires = 9223372036854775807 END),
written AS (
    UPDATE {schema}.lease AS l
    SET fence = CASE WHEN t.verb = 1 THEN t.now ELSE l.fence END,
        fence_first = CASE WHEN t.verb = 1
            THEN greatest(t.now - ($4::pg_catalog.int8[])[t.n] + 1, l.fence + 1,
                          ($5::pg_catalog.int8[])[t.n] + 1) END,
        fence_last = CASE WHEN t.verb = 1 THEN t.now END,
        holder = CASE WHEN t.verb = 1 THEN t.holder END,
        attached = CASE WHEN t.verb = 1 THEN true END,
        granted = CASE WHEN t.verb = 1 THEN t.now END,
        expires = CASE WHEN t.verb = 1 THEN 9223372036854775807 END,
        process = CASE WHEN t.verb = 1 THEN $9::pg_catalog.text END,
        who = CASE WHEN t.verb = 1 THEN $10::pg_catalog.text END
    FROM tried AS t
    WHERE t.got AND t.verb <> 2 AND l.ctid = t.place AND NOT l.queued
      AND (l.value IS NULL OR l.value_keep_until <= t.now)
      AND CASE WHEN t.verb = 1 THEN l.blocked_until <= t.now AND l.fence < t.now
               ELSE l.holder = t.holder AND l.process = $9::pg_catalog.text
                   AND l.expires = 9223372036854775807 END
    RETURNING t.n, t.verb, t.lock, t.now, l.fence_first, l.fence_last),
made AS (
    INSERT INTO {schema}.lease AS l
        (key, fence, fence_first, fence_last, holder, attached, granted, expires, process, who)
    SELECT t.key, t.now,
           greatest(t.now - ($4::pg_catalog.int8[])[t.n] + 1, ($5::pg_catalog.int8[])[t.n] + 1),
           t.now, t.holder, true, t.now, 9223372036854775807, $9::pg_catalog.text,
           $10::pg_catalog.text
    FROM tried AS t WHERE t.got AND t.verb = 1 AND t.place IS NULL
    ON CONFLICT (key) DO NOTHING
    RETURNING l.key, l.granted, l.fence_first, l.fence_last)
SELECT a.now, a.entries, a.firsts, a.lasts, a.waited_for,
       ARRAY(SELECT r.n FROM unnest(a.released, a.locks) AS r(n, lock)
             WHERE NOT pg_catalog.pg_advisory_unlock(r.lock)),
       CASE WHEN a.taken > a.granted THEN
           (SELECT pg_catalog.count(pg_catalog.pg_advisory_unlock(t.lock)) FROM tried AS t
            WHERE t.got AND t.verb = 1 AND t.n <> ALL (a.entries)) END
FROM (
    SELECT o.*, {schema}.lease_ended_1(o.ended, $1::pg_catalog.int8[], $2::pg_catalog.text[],
                                       o.now + 100000, $8::pg_catalog.text) AS waited_for,
           (SELECT pg_catalog.count(*) FROM tried AS t WHERE t.got AND t.verb = 1) AS taken
    FROM (
        SELECT pg_catalog.min(d.now) AS now, coalesce(pg_catalog.array_agg(d.n), '{}') AS entries,
               pg_catalog.array_agg(d.fence_first) AS firsts,
               pg_catalog.array_agg(d.fence_last) AS lasts,
               coalesce(pg_catalog.array_agg(d.n) FILTER (WHERE d.verb > 1), '{}') AS ended,
               pg_catalog.array_agg(d.n) FILTER (WHERE d.verb = 3) AS released,
               pg_catalog.array_agg(d.lock) FILTER (WHERE d.verb = 3) AS locks,
               pg_catalog.count(*) FILTER (WHERE d.verb = 1) AS granted
        FROM (
            SELECT w.n, w.verb, w.lock, w.now, w.fence_first, w.fence_last FROM written AS w
            UNION ALL
            SELECT t.n, t.verb, t.lock, t.now, t.fence_first, t.fence_last
            FROM tried AS t WHERE t.verb = 2
            UNION ALL
            SELECT pg_catalog.array_position($2::pg_catalog.text[], m.key), 1, NULL, m.granted,
                   m.fence_first, m.fence_last
            FROM made AS m) AS d
        OFFSET 0) AS o
    OFFSET 0) AS a
