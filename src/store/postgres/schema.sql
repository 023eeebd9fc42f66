-- SPDX-License-Identifier: Apache-2.0
-- What the store keeps in a database, and its steps. {schema} is the quoted name of the schema,
-- {format} the format of the tables. The rules are those of store/store.hpp, said again in the
-- server's language. All times are microseconds since 1970 by the server's clock; the largest
-- number there is means for ever.
--
-- A key's row in `lease` is locked by whoever takes a step on it, and what belongs to the key in
-- `lease_grant` and `lease_ticket` is changed under that lock alone. An exclusive grant, or the
-- trace that it left, is in the row itself; those of a key with a capacity above 1 are in
-- `lease_grant`.
--
-- What is called from outside has a search_path of its own, which holds for all that it calls: else
-- somebody who may create in a schema of the caller's path could offer a function or an operator
-- whose types fit better than the server's own, to be run with the caller's rights. What the short
-- ways call counts on that of the session. So with row_security: a policy that hides rows from some
-- users would have each of them see other holders, so it is an error instead.

CREATE TABLE {schema}.lease_format (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format integer NOT NULL
);
INSERT INTO {schema}.lease_format (format) VALUES ({format});

CREATE TABLE {schema}.lease (
    key text COLLATE "C" PRIMARY KEY,
    fence bigint NOT NULL DEFAULT 0,
    capacity bigint NOT NULL DEFAULT 1,
    shared boolean NOT NULL DEFAULT false,
    queued boolean NOT NULL DEFAULT false,
    last_ticket bigint NOT NULL DEFAULT 0,
    holder bytea,
    fence_first bigint,
    fence_last bigint,
    attached boolean,
    granted bigint,
    expires bigint,
    process text,
    who text,
    value bytea,
    value_fence bigint,
    value_mark boolean,
    value_written bigint,
    value_fresh_until bigint,
    value_keep_until bigint,
    blocked_until bigint NOT NULL DEFAULT 0,
    blocked_reason bytea
) WITH (fillfactor = 50);

CREATE TABLE {schema}.lease_grant (
    key text COLLATE "C",
    holder bytea,
    fence_first bigint NOT NULL,
    fence_last bigint NOT NULL,
    weight bigint NOT NULL,
    attached boolean NOT NULL,
    granted bigint NOT NULL,
    expires bigint NOT NULL,
    process text NOT NULL,
    who text NOT NULL,
    PRIMARY KEY (key, holder)
) WITH (fillfactor = 70);

CREATE TABLE {schema}.lease_ticket (
    key text COLLATE "C",
    number bigint,
    holder bytea NOT NULL,
    entered bigint NOT NULL,
    until bigint NOT NULL,
    process text NOT NULL,
    who text NOT NULL,
    PRIMARY KEY (key, number),
    UNIQUE (key, holder)
) WITH (fillfactor = 70);

-- Which process listens for which key. Nothing is lost with it but wake-ups, behind which everybody
-- has a timer.
CREATE UNLOGGED TABLE {schema}.lease_waiter (
    key text COLLATE "C",
    process text,
    pid integer NOT NULL,
    started timestamptz,
    PRIMARY KEY (key, process)
);
CREATE INDEX lease_waiter_process ON {schema}.lease_waiter (process);

-- For guarantee=strict: in which life of the server the grants so far were given, and until when
-- nothing is granted. A promoted standby begins a new timeline.
CREATE TABLE {schema}.lease_epoch (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    timeline text NOT NULL,
    longest bigint NOT NULL,
    quiet_until bigint NOT NULL
);

CREATE FUNCTION {schema}.lease_now_1() RETURNS bigint LANGUAGE sql VOLATILE AS
$body$ SELECT (date_part('epoch', clock_timestamp()) * 1000000::float8)::bigint $body$;

-- Whether the session that listens for a waiter is still there. Of sessions of other users the
-- start is hidden.
CREATE FUNCTION {schema}.lease_listens_1(p_pid integer, p_started timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS
$body$
    SELECT EXISTS (SELECT FROM pg_stat_get_activity(p_pid) AS a
                   WHERE a.backend_start IS NULL OR a.backend_start = p_started)
$body$;

-- The live holders of a shared key, eight texts each.
CREATE FUNCTION {schema}.lease_holders_1(p_key text, p_now bigint) RETURNS text[]
LANGUAGE sql STABLE AS
$body$
    SELECT coalesce(array_agg(part ORDER BY g.fence_first, n), '{}')
    FROM {schema}.lease_grant g,
         unnest(ARRAY[g.fence_first::text, g.fence_last::text, g.weight::text, g.attached::text,
                      g.granted::text, g.expires::text, g.process, g.who])
         WITH ORDINALITY AS parts(part, n)
    WHERE g.key = p_key AND p_now < g.expires
$body$;

-- Wakes all processes that wait for a key, after a step of p_process. Each is told whether the step
-- was its own: a byte 3 before the key, and else a byte 2.
CREATE FUNCTION {schema}.lease_wake_1(p_key text, p_process text) RETURNS void
LANGUAGE plpgsql VOLATILE AS
$body$
BEGIN
    PERFORM pg_notify('dibs:' || w.process,
                      CASE WHEN w.process = p_process THEN E'\x03' ELSE E'\x02' END || p_key)
    FROM {schema}.lease_waiter w WHERE w.key = p_key;
END
$body$;

-- A grant has ended: wakes those who wait for the key, as lease_wake_1. Whether another process does.
CREATE FUNCTION {schema}.lease_released_1(p_key text, p_process text)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS
$body$
DECLARE
    v_waiting text;
    v_others boolean := false;
BEGIN
    FOR v_waiting IN SELECT w.process FROM {schema}.lease_waiter w WHERE w.key = p_key LOOP
        IF v_waiting = p_process THEN
            PERFORM pg_notify('dibs:' || v_waiting, E'\x03' || p_key);
        ELSE
            PERFORM pg_notify('dibs:' || v_waiting, E'\x02' || p_key);
            v_others := true;
        END IF;
    END LOOP;
    RETURN v_others;
END
$body$;

-- How many processes wait for a key. Only where that is many does it matter whether they still do.
CREATE FUNCTION {schema}.lease_watchers_1(p_key text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS
$body$
DECLARE
    v_all bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.lease_waiter) THEN
        RETURN 0;
    END IF;
    SELECT count(*) INTO v_all FROM {schema}.lease_waiter w WHERE w.key = p_key;
    IF v_all > 8 THEN
        SELECT count(*) INTO v_all FROM {schema}.lease_waiter w
        WHERE w.key = p_key AND {schema}.lease_listens_1(w.pid, w.started);
    END IF;
    RETURN v_all;
END
$body$;

-- The same for a batch that was carried out by step_some.sql, by p_until at the latest: of these
-- entries, the released ones each wake those who wait. Which of them another process waits for.
CREATE FUNCTION {schema}.lease_ended_1(p_entries bigint[], p_verbs bigint[], p_keys text[],
                                       p_until bigint, p_process text)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS
$body$
DECLARE
    v_entry bigint;
BEGIN
    IF p_until < (date_part('epoch', clock_timestamp()) * 1000000::float8)::bigint THEN
        PERFORM {schema}.lease_undo_1();
    END IF;
    IF NOT EXISTS (SELECT FROM {schema}.lease_waiter) THEN
        RETURN NULL;
    END IF;
    FOREACH v_entry IN ARRAY p_entries LOOP
        IF p_verbs[v_entry] = 3 THEN
            PERFORM {schema}.lease_wake_1(p_keys[v_entry], p_process);
        END IF;
    END LOOP;
    RETURN ARRAY(SELECT a FROM unnest(p_entries) AS a
                 WHERE EXISTS (SELECT FROM {schema}.lease_waiter w
                               WHERE w.key = p_keys[a] AND w.process <> p_process));
END
$body$;

-- Ends the statement: what it did is undone.
CREATE FUNCTION {schema}.lease_undo_1() RETURNS boolean LANGUAGE plpgsql VOLATILE AS
$body$
BEGIN
    RAISE EXCEPTION 'the row was locked for too long' USING ERRCODE = 'serialization_failure';
END
$body$;

-- Until when nothing may be granted, for those who ask for guarantee=strict and leases of at most
-- p_longest. Whatever is new (the timeline, a longer lease, all of it) may follow on grants that are
-- not known here.
CREATE FUNCTION {schema}.lease_quiet_1(p_longest bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS
$body$
DECLARE
    e {schema}.lease_epoch%ROWTYPE;
    v_timeline text := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
BEGIN
    SELECT * INTO e FROM {schema}.lease_epoch;
    IF FOUND AND e.timeline = v_timeline AND e.longest >= p_longest THEN
        RETURN e.quiet_until;
    END IF;
    INSERT INTO {schema}.lease_epoch AS old (timeline, longest, quiet_until)
    VALUES (v_timeline, p_longest, {schema}.lease_now_1() + p_longest)
    ON CONFLICT (one) DO UPDATE SET
        timeline = excluded.timeline,
        longest = greatest(old.longest, excluded.longest),
        quiet_until = CASE
            WHEN old.timeline = excluded.timeline AND old.longest >= excluded.longest
            THEN old.quiet_until
            ELSE {schema}.lease_now_1() + greatest(old.longest, excluded.longest) END
    RETURNING * INTO e;
    RETURN e.quiet_until;
END
$body$;

-- A batch. Entries come in the order of their keys, and of one key releases and renewals first;
-- their parts are one array each. p_verb: 1 acquire, 2 renew, 3 release, 4 revoke, 5 block. p_flags:
-- 1 attached, 2 late, 4 the adopter is attached, 8 simple: the only entry of its key, of an exclusive
-- lease, and nothing but acquire (no mark, no queue), renew (the same fences, no adopter) or release
-- (no result). p_alone: a row that another transaction has locked is waited for, p_patience ms at
-- most; otherwise its entry is answered 50, to be sent again alone. p_longest: of the leases, with
-- guarantee=strict; 0 without.
--
-- One row per entry, in any order, o_entry says which: o_what is 0 failed (o_code says why),
-- 1 granted, 2 held (o_code: how many processes wait for the key), 3 done, 4 blocked, 5 not ready, 6 too late, 7 renewed, 8 released, 9 finished, 10 not held
-- (o_code: 1 expired, 2 taken, 3 revoked, 4 gone), 11 revoked, 12 fence moved, 13 block set,
-- 50 locked. A row with o_entries stands for all of those, all at o_now: o_firsts and o_lasts have
-- their fences. And for each entry whose key somebody else waits for there is a row 51.
CREATE FUNCTION {schema}.lease_execute_1(
    p_verb bigint[], p_key text[], p_holder bytea[], p_time bigint[], p_fences bigint[],
    p_floor bigint[], p_weight bigint[], p_capacity bigint[], p_flags bigint[], p_seen bigint[],
    p_not_after bigint[], p_queue bigint[], p_value bytea[], p_fresh bigint[], p_keep bigint[],
    p_adopter bytea[], p_reason bytea[], p_process text, p_who text, p_alone boolean,
    p_patience bigint, p_longest bigint)
RETURNS TABLE (o_what bigint, o_code bigint, o_now bigint, o_first bigint, o_last bigint,
               o_expires bigint, o_retry bigint, o_ticket bigint, o_position bigint,
               o_value bytea, o_value_fence bigint, o_value_mark boolean, o_value_written bigint,
               o_value_fresh_until bigint, o_value_keep_until bigint,
               o_holders text[], o_reason bytea, o_waiters boolean, o_entry bigint,
               o_entries bigint[], o_firsts bigint[], o_lasts bigint[])
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS
$body$
DECLARE
    forever CONSTANT bigint := 9223372036854775807;
    r {schema}.lease%ROWTYPE;
    g {schema}.lease_grant%ROWTYPE;
    h {schema}.lease_ticket%ROWTYPE;
    i bigint;
    v_verb bigint;
    v_key text;
    v_holder bytea;
    v_now bigint;
    v_known boolean;
    v_live boolean;       -- somebody holds the key
    v_mine boolean;       -- this holder does
    v_weight bigint;      -- of the live holders
    v_result boolean;     -- a result is readable
    v_ticket bigint;      -- of this holder, if it has one
    v_leaves boolean;     -- that ticket ends
    v_written boolean;    -- the row is to be written
    v_freed boolean;      -- whoever waits may have the key
    v_trace boolean;
    v_base bigint;
    v_until bigint;
    v_wakes text[] := '{}';
    v_asked bigint[] := '{}';
    v_quiet bigint := 0;  -- nothing is granted until then
    v_count bigint := coalesce(array_length(p_key, 1), 0);
    v_rest bigint[];      -- entries that take the long way
    v_locked bigint[];
    v_done bigint[];
    v_places tid[];
    v_released bigint[] := '{}';
    v_renewed bigint[] := '{}';
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'transactions of this session are %; dibs needs read committed',
            current_setting('transaction_isolation') USING ERRCODE = 'DBS01';
    END IF;
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM set_config('lock_timeout', p_patience::text, true);

    IF p_longest > 0 AND (1 = ANY (p_verb) OR cardinality(array_remove(p_adopter, NULL)) > 0) THEN
        v_quiet := {schema}.lease_quiet_1(p_longest);
    END IF;

    -- The short way: simple entries of rows on which nothing else is, all of a kind in one statement.
    -- The subquery is what makes the server look at each key by the index, whatever it believes of
    -- the table.
    IF v_count = 1 THEN
        v_rest := '{1}';
    ELSE
        SELECT coalesce(array_agg(q.n), '{}'), coalesce(array_agg(q.place), '{}')
        INTO v_locked, v_places FROM (
            SELECT e.n, l.place
            FROM unnest(p_key) WITH ORDINALITY AS e(key, n)
            CROSS JOIN LATERAL (SELECT k.ctid AS place FROM {schema}.lease k
                                WHERE k.key = e.key COLLATE "C" FOR UPDATE SKIP LOCKED) AS l
            WHERE p_flags[e.n] & 8 = 8) AS q;
        v_now := (date_part('epoch', clock_timestamp()) * 1000000::float8)::bigint;
        o_now := v_now;
        IF 3 = ANY (p_verb) THEN
            WITH done AS (
                UPDATE {schema}.lease l
                SET holder = NULL, fence_first = NULL, fence_last = NULL, attached = NULL,
                    granted = NULL, expires = NULL, process = NULL, who = NULL
                FROM unnest(v_locked, v_places) AS e(n, place)
                WHERE p_verb[e.n] = 3 AND l.ctid = e.place AND l.holder = p_holder[e.n]
                  AND v_now < l.expires AND NOT l.queued
                  AND (l.value IS NULL OR l.value_keep_until <= v_now)
                RETURNING e.n)
            SELECT array_agg(d.n) INTO o_entries FROM done d;
            IF o_entries IS NOT NULL THEN
                v_released := o_entries;
                o_what := 8; o_firsts := NULL; o_lasts := NULL;
                RETURN NEXT;
            END IF;
        END IF;
        IF 2 = ANY (p_verb) THEN
            WITH done AS (
                UPDATE {schema}.lease l SET expires = v_now + p_time[e.n]
                FROM unnest(v_locked, v_places) AS e(n, place)
                WHERE p_verb[e.n] = 2 AND l.ctid = e.place AND l.holder = p_holder[e.n]
                  AND v_now < l.expires AND NOT l.queued
                  AND (l.value IS NULL OR l.value_keep_until <= v_now)
                RETURNING e.n, l.fence_first, l.fence_last)
            SELECT array_agg(d.n), array_agg(d.fence_first), array_agg(d.fence_last)
            INTO o_entries, o_firsts, o_lasts FROM done d;
            IF o_entries IS NOT NULL THEN
                v_renewed := o_entries;
                o_what := 7;
                RETURN NEXT;
            END IF;
        END IF;
        v_done := v_released || v_renewed;
        IF 1 = ANY (p_verb) AND v_quiet <= v_now THEN
            WITH done AS (
                UPDATE {schema}.lease l
                SET fence = greatest(v_now, l.fence + 1, p_floor[e.n] + 1), capacity = 1,
                    fence_first = greatest(
                        greatest(v_now, l.fence + 1, p_floor[e.n] + 1) - p_fences[e.n] + 1,
                        l.fence + 1, p_floor[e.n] + 1),
                    fence_last = greatest(v_now, l.fence + 1, p_floor[e.n] + 1),
                    holder = p_holder[e.n], attached = p_flags[e.n] & 1 = 1, granted = v_now,
                    expires = v_now + p_time[e.n], process = p_process, who = p_who
                FROM unnest(v_locked, v_places) AS e(n, place)
                WHERE p_verb[e.n] = 1 AND l.ctid = e.place
                  AND (l.holder IS NULL OR l.expires <= v_now)
                  AND (l.value IS NULL OR l.value_keep_until <= v_now)
                  AND NOT l.queued AND NOT l.shared
                  AND l.blocked_until <= v_now AND l.fence < forever AND p_floor[e.n] < forever
                  AND (p_not_after[e.n] IS NULL OR v_now <= p_not_after[e.n])
                RETURNING e.n, l.fence_first, l.fence_last)
            SELECT array_agg(d.n), array_agg(d.fence_first), array_agg(d.fence_last)
            INTO o_entries, o_firsts, o_lasts FROM done d;
            IF o_entries IS NOT NULL THEN
                v_done := v_done || o_entries;
                o_what := 1;
                RETURN NEXT;
            END IF;
        END IF;
        -- Keys without a row.
        IF cardinality(v_locked) < v_count AND 1 = ANY (p_verb) AND v_quiet <= v_now THEN
            v_rest := ARRAY(
                SELECT e.n FROM unnest(p_key) WITH ORDINALITY AS e(key, n)
                WHERE p_verb[e.n] = 1 AND p_flags[e.n] & 8 = 8 AND e.n <> ALL (v_locked)
                  AND p_floor[e.n] < forever
                  AND (p_not_after[e.n] IS NULL OR v_now <= p_not_after[e.n]));
            IF v_rest <> '{}' THEN
                WITH made AS (
                    INSERT INTO {schema}.lease AS l
                        (key, fence, fence_first, fence_last, holder, attached, granted, expires,
                         process, who)
                    SELECT p_key[e.n], greatest(v_now, p_floor[e.n] + 1),
                           greatest(greatest(v_now, p_floor[e.n] + 1) - p_fences[e.n] + 1,
                                    p_floor[e.n] + 1),
                           greatest(v_now, p_floor[e.n] + 1), p_holder[e.n],
                           p_flags[e.n] & 1 = 1, v_now, v_now + p_time[e.n], p_process, p_who
                    FROM unnest(v_rest) AS e(n)
                    ON CONFLICT (key) DO NOTHING
                    RETURNING l.key, l.fence_first, l.fence_last)
                SELECT array_agg(e.n), array_agg(m.fence_first), array_agg(m.fence_last)
                INTO o_entries, o_firsts, o_lasts
                FROM made m JOIN unnest(v_rest) AS e(n) ON p_key[e.n] = m.key COLLATE "C";
                IF o_entries IS NOT NULL THEN
                    v_done := v_done || o_entries;
                    o_what := 1;
                    RETURN NEXT;
                END IF;
            END IF;
        END IF;
        v_rest := '{}';
        IF cardinality(v_done) < v_count THEN
            v_rest := ARRAY(SELECT generate_series(1, v_count) EXCEPT ALL
                            SELECT unnest(v_done) ORDER BY 1);
        END IF;
        o_entries := NULL; o_firsts := NULL; o_lasts := NULL;
    END IF;

    FOREACH o_entry IN ARRAY v_rest LOOP
        i := o_entry;
        v_verb := p_verb[i];
        v_key := p_key[i];
        v_holder := p_holder[i];
        o_code := NULL; o_first := NULL; o_last := NULL; o_expires := NULL; o_retry := NULL;
        o_ticket := NULL; o_position := NULL; o_value := NULL; o_holders := NULL;
        o_reason := NULL; o_waiters := NULL;
        IF p_alone THEN
            SELECT * INTO r FROM {schema}.lease l WHERE l.key = v_key FOR UPDATE;
        ELSE
            SELECT * INTO r FROM {schema}.lease l WHERE l.key = v_key FOR UPDATE SKIP LOCKED;
        END IF;
        v_known := FOUND;
        IF NOT v_known THEN
            -- An acquire or a hold finds out when it inserts the row.
            IF NOT p_alone AND v_verb IN (2, 3, 4) THEN
                PERFORM FROM {schema}.lease l WHERE l.key = v_key;
                IF FOUND THEN
                    o_what := 50;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
            END IF;
            v_now := (date_part('epoch', clock_timestamp()) * 1000000::float8)::bigint;
            IF v_verb = 1 AND p_capacity[i] = 1 AND v_quiet <= v_now
               AND (p_not_after[i] IS NULL OR v_now <= p_not_after[i]) THEN
                IF p_floor[i] = forever THEN
                    o_what := 0; o_code := 2;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
                o_last := greatest(v_now, p_floor[i] + 1);
                o_first := greatest(o_last - p_fences[i] + 1, p_floor[i] + 1);
                o_expires := v_now + p_time[i];
                INSERT INTO {schema}.lease AS l
                    (key, fence, holder, fence_first, fence_last, attached, granted, expires,
                     process, who, value, value_fence, value_mark, value_written,
                     value_fresh_until, value_keep_until)
                VALUES (v_key, o_last, v_holder, o_first, o_last, p_flags[i] & 1 = 1, v_now,
                        o_expires, p_process, p_who, p_value[i],
                        CASE WHEN p_value[i] IS NOT NULL THEN o_last END,
                        CASE WHEN p_value[i] IS NOT NULL THEN true END,
                        CASE WHEN p_value[i] IS NOT NULL THEN v_now END,
                        CASE WHEN p_value[i] IS NULL THEN NULL
                             WHEN p_fresh[i] = 0 THEN 0
                             WHEN p_fresh[i] = forever THEN forever
                             ELSE v_now + p_fresh[i] END,
                        CASE WHEN p_value[i] IS NULL THEN NULL
                             WHEN greatest(p_keep[i], p_fresh[i]) = forever THEN forever
                             ELSE v_now + greatest(p_keep[i], p_fresh[i]) END)
                ON CONFLICT (key) DO NOTHING;
                IF FOUND THEN
                    o_what := 1; o_now := v_now;
                ELSE
                    o_what := 50;
                END IF;
                RETURN NEXT;
                CONTINUE;
            END IF;
            IF v_verb = 5 OR (v_verb = 1 AND (p_not_after[i] IS NULL OR v_now <= p_not_after[i])
                              AND (v_quiet <= v_now OR p_queue[i] > 0)) THEN
                INSERT INTO {schema}.lease AS l (key) VALUES (v_key)
                ON CONFLICT (key) DO NOTHING RETURNING * INTO r;
                IF NOT FOUND THEN
                    o_what := 50;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
                v_known := true;
            ELSE
                r.fence := 0; r.capacity := 1; r.shared := false; r.queued := false;
                r.last_ticket := 0; r.blocked_until := 0;
            END IF;
        END IF;
        v_now := (date_part('epoch', clock_timestamp()) * 1000000::float8)::bigint;
        o_now := v_now;
        v_written := false;
        v_freed := false;
        v_leaves := false;
        v_ticket := NULL;
        v_result := r.value IS NOT NULL AND v_now < r.value_keep_until;
        IF v_result THEN
            -- As it was found.
            o_value := r.value; o_value_fence := r.value_fence; o_value_mark := r.value_mark;
            o_value_written := r.value_written; o_value_fresh_until := r.value_fresh_until;
            o_value_keep_until := r.value_keep_until;
        END IF;

        IF r.shared THEN
            SELECT coalesce(sum(s.weight), 0), count(*) > 0,
                   coalesce(bool_or(s.holder = v_holder), false)
            INTO v_weight, v_live, v_mine
            FROM {schema}.lease_grant s WHERE s.key = v_key AND v_now < s.expires;
            SELECT * INTO g FROM {schema}.lease_grant s
            WHERE s.key = v_key AND s.holder = v_holder;
            v_trace := FOUND;
        ELSE
            v_live := r.holder IS NOT NULL AND v_now < r.expires;
            v_trace := coalesce(r.holder = v_holder, false);
            v_mine := v_live AND v_trace;
            v_weight := CASE WHEN v_live THEN 1 ELSE 0 END;
        END IF;

        h.number := NULL;
        IF r.queued THEN
            LOOP
                SELECT * INTO h FROM {schema}.lease_ticket t
                WHERE t.key = v_key ORDER BY t.key, t.number LIMIT 1;
                EXIT WHEN NOT FOUND OR v_now < h.until;
                DELETE FROM {schema}.lease_ticket t WHERE t.key = v_key AND t.number = h.number;
            END LOOP;
            IF h.number IS NULL THEN
                r.queued := false;
                v_written := true;
            ELSIF v_verb IN (1, 3) THEN
                SELECT t.number, t.until INTO v_ticket, v_until FROM {schema}.lease_ticket t
                WHERE t.key = v_key AND t.holder = v_holder;
                -- Who comes back after its time was over has lost its place.
                IF v_ticket IS NOT NULL AND v_until <= v_now THEN
                    DELETE FROM {schema}.lease_ticket t
                    WHERE t.key = v_key AND t.number = v_ticket;
                    v_ticket := NULL;
                END IF;
            END IF;
        END IF;

        IF v_verb = 1 THEN
            IF v_now > p_not_after[i] THEN
                o_what := 6;
            ELSIF v_mine THEN
                o_what := 1;
                o_expires := v_now + p_time[i];
                IF r.shared THEN
                    o_first := g.fence_first; o_last := g.fence_last;
                    UPDATE {schema}.lease_grant s SET expires = o_expires
                    WHERE s.key = v_key AND s.holder = v_holder;
                ELSE
                    o_first := r.fence_first; o_last := r.fence_last;
                    r.expires := o_expires;
                    v_written := true;
                END IF;
            -- A capacity of 1 asks for the key alone, whatever others divide it into.
            ELSIF v_live AND r.capacity <> p_capacity[i] AND r.capacity <> 1
                  AND p_capacity[i] <> 1 THEN
                o_what := 0; o_code := 1; o_first := r.capacity;
            ELSIF v_now < r.blocked_until THEN
                o_what := 4;
                o_reason := r.blocked_reason;
                o_retry := CASE WHEN r.blocked_until = forever THEN forever
                                ELSE r.blocked_until - v_now END;
            ELSIF v_weight + p_weight[i] > p_capacity[i]
                  OR v_live AND v_weight + p_weight[i] > r.capacity THEN
                o_what := 2;
                IF r.shared THEN
                    o_holders := {schema}.lease_holders_1(v_key, v_now);
                    SELECT min(s.expires) - v_now INTO o_retry FROM {schema}.lease_grant s
                    WHERE s.key = v_key AND v_now < s.expires;
                ELSE
                    o_holders := ARRAY[r.fence_first::text, r.fence_last::text, '1',
                                       r.attached::text, r.granted::text, r.expires::text,
                                       r.process, r.who];
                    o_retry := r.expires - v_now;
                END IF;
            ELSIF v_result AND v_now < r.value_fresh_until AND r.value_fence > p_seen[i] THEN
                o_what := 3;
                v_leaves := v_ticket IS NOT NULL;
                v_freed := v_leaves AND v_ticket = h.number;
            ELSIF h.number IS NOT NULL AND h.number IS DISTINCT FROM v_ticket THEN
                o_what := 2;
                o_retry := h.until - v_now;
                IF r.shared THEN
                    o_holders := {schema}.lease_holders_1(v_key, v_now);
                END IF;
                -- Whoever finds a free key reminds its head, unless that is of its own process.
                IF h.process <> p_process THEN
                    PERFORM pg_notify('dibs:' || h.process, v_key);
                END IF;
            ELSIF v_now < v_quiet THEN
                o_what := 5;
                o_retry := v_quiet - v_now;
            ELSE
                v_base := greatest(r.fence, p_floor[i]);
                IF v_base = forever THEN
                    o_what := 0; o_code := 2;
                ELSE
                    IF v_now <= v_base THEN
                        o_first := v_base + 1; o_last := v_base + 1;
                    ELSE
                        o_first := greatest(v_now - p_fences[i] + 1, v_base + 1);
                        o_last := v_now;
                    END IF;
                    o_what := 1;
                    o_expires := v_now + p_time[i];
                    r.fence := o_last;
                    r.capacity := p_capacity[i];
                    v_written := true;
                    v_leaves := v_ticket IS NOT NULL;
                    IF r.shared THEN
                        DELETE FROM {schema}.lease_grant s
                        WHERE s.key = v_key AND s.expires <= v_now;
                    END IF;
                    r.shared := p_capacity[i] > 1;
                    IF r.shared THEN
                        r.holder := NULL; r.fence_first := NULL; r.fence_last := NULL;
                        r.attached := NULL; r.granted := NULL; r.expires := NULL;
                        r.process := NULL; r.who := NULL;
                        INSERT INTO {schema}.lease_grant
                            (key, holder, fence_first, fence_last, weight, attached, granted,
                             expires, process, who)
                        VALUES (v_key, v_holder, o_first, o_last, p_weight[i],
                                p_flags[i] & 1 = 1, v_now, o_expires, p_process, p_who);
                        -- Of many that a release wakes not all ask at once; where several fit in,
                        -- each lets the others know.
                        v_freed := v_weight + p_weight[i] < p_capacity[i];
                    ELSE
                        r.holder := v_holder; r.fence_first := o_first; r.fence_last := o_last;
                        r.attached := p_flags[i] & 1 = 1; r.granted := v_now;
                        r.expires := o_expires; r.process := p_process; r.who := p_who;
                    END IF;
                    IF p_value[i] IS NOT NULL THEN
                        r.value := p_value[i]; r.value_fence := o_last; r.value_mark := true;
                        r.value_written := v_now;
                        r.value_fresh_until := CASE WHEN p_fresh[i] = 0 THEN 0
                            WHEN p_fresh[i] = forever THEN forever ELSE v_now + p_fresh[i] END;
                        r.value_keep_until :=
                            CASE WHEN greatest(p_keep[i], p_fresh[i]) = forever THEN forever
                                 ELSE v_now + greatest(p_keep[i], p_fresh[i]) END;
                    END IF;
                END IF;
            END IF;
            IF o_what IN (2, 4, 5) AND p_queue[i] > 0 THEN
                IF v_ticket IS NULL THEN
                    r.last_ticket := r.last_ticket + 1;
                    r.queued := true;
                    v_written := true;
                    v_ticket := r.last_ticket;
                    INSERT INTO {schema}.lease_ticket
                        (key, number, holder, entered, until, process, who)
                    VALUES (v_key, v_ticket, v_holder, v_now, v_now + p_queue[i], p_process,
                            p_who);
                ELSE
                    UPDATE {schema}.lease_ticket t
                    SET until = v_now + p_queue[i], process = p_process, who = p_who
                    WHERE t.key = v_key AND t.number = v_ticket;
                END IF;
                o_ticket := v_ticket;
                SELECT count(*) + 1 INTO o_position FROM (
                    SELECT FROM {schema}.lease_ticket t
                    WHERE t.key = v_key AND t.number < v_ticket AND v_now < t.until
                    LIMIT 1000) AS before;
            END IF;

        ELSIF v_verb = 2 THEN
            IF NOT v_mine THEN
                o_what := 10;
            ELSIF r.shared AND p_adopter[i] <> v_holder AND EXISTS (
                      SELECT FROM {schema}.lease_grant s
                      WHERE s.key = v_key AND s.holder = p_adopter[i] AND v_now < s.expires) THEN
                o_what := 0; o_code := 3;
            ELSIF p_fences[i] > 0 AND r.fence = forever THEN
                o_what := 0; o_code := 2;
            ELSIF v_now < v_quiet AND p_adopter[i] <> v_holder THEN
                -- Somebody else may have adopted it, and the server forgotten that.
                o_what := 5;
                o_retry := v_quiet - v_now;
            ELSE
                o_what := 7;
                o_expires := v_now + p_time[i];
                IF p_fences[i] > 0 THEN
                    IF v_now <= r.fence THEN
                        o_first := r.fence + 1; o_last := r.fence + 1;
                    ELSE
                        o_first := greatest(v_now - p_fences[i] + 1, r.fence + 1);
                        o_last := v_now;
                    END IF;
                    r.fence := o_last;
                ELSIF r.shared THEN
                    o_first := g.fence_first; o_last := g.fence_last;
                ELSE
                    o_first := r.fence_first; o_last := r.fence_last;
                END IF;
                IF r.shared THEN
                    v_written := v_written OR p_fences[i] > 0;
                    IF p_adopter[i] IS NOT NULL THEN
                        -- The adopter's id may have left a trace here.
                        DELETE FROM {schema}.lease_grant s
                        WHERE s.key = v_key AND s.holder = p_adopter[i]
                          AND p_adopter[i] <> v_holder;
                        UPDATE {schema}.lease_grant s
                        SET holder = p_adopter[i], attached = p_flags[i] & 4 = 4,
                            process = p_process, who = p_who, fence_first = o_first,
                            fence_last = o_last, expires = o_expires
                        WHERE s.key = v_key AND s.holder = v_holder;
                    ELSE
                        UPDATE {schema}.lease_grant s
                        SET fence_first = o_first, fence_last = o_last, expires = o_expires
                        WHERE s.key = v_key AND s.holder = v_holder;
                    END IF;
                ELSE
                    v_written := true;
                    r.expires := o_expires; r.fence_first := o_first; r.fence_last := o_last;
                    IF p_adopter[i] IS NOT NULL THEN
                        r.holder := p_adopter[i]; r.attached := p_flags[i] & 4 = 4;
                        r.process := p_process; r.who := p_who;
                    END IF;
                END IF;
            END IF;

        ELSIF v_verb = 3 THEN
            IF r.shared THEN
                v_base := g.fence_last;
                v_trace := v_trace AND g.expires >= g.granted;
            ELSE
                v_base := r.fence_last;
                v_trace := v_trace AND r.expires >= r.granted;
            END IF;
            IF v_mine OR (p_value[i] IS NOT NULL AND p_flags[i] & 2 = 2 AND v_trace
                          AND v_base = r.fence) THEN
                o_what := 8;
                v_freed := true;
                v_written := true;
                -- What a crash brings back ends by itself soon: not worth a wait for the disk.
                IF v_count = 1 AND v_mine AND p_value[i] IS NULL
                   AND (CASE WHEN r.shared THEN g.expires ELSE r.expires END)
                       < v_now + 60000000 THEN
                    PERFORM set_config('synchronous_commit', 'off', true);
                END IF;
                IF p_value[i] IS NOT NULL THEN
                    o_what := 9;
                    r.value := p_value[i]; r.value_fence := v_base; r.value_mark := false;
                    r.value_written := v_now;
                    r.value_fresh_until := CASE WHEN p_fresh[i] = 0 THEN 0
                        WHEN p_fresh[i] = forever THEN forever ELSE v_now + p_fresh[i] END;
                    r.value_keep_until :=
                        CASE WHEN greatest(p_keep[i], p_fresh[i]) = forever THEN forever
                             ELSE v_now + greatest(p_keep[i], p_fresh[i]) END;
                    o_value := NULL;
                    IF v_now < r.value_keep_until THEN
                        o_value := r.value; o_value_fence := r.value_fence;
                        o_value_mark := false; o_value_written := v_now;
                        o_value_fresh_until := r.value_fresh_until;
                        o_value_keep_until := r.value_keep_until;
                    END IF;
                END IF;
                IF r.shared THEN
                    DELETE FROM {schema}.lease_grant s
                    WHERE s.key = v_key AND s.holder = v_holder;
                    v_written := o_what = 9;
                ELSE
                    r.holder := NULL; r.fence_first := NULL; r.fence_last := NULL;
                    r.attached := NULL; r.granted := NULL; r.expires := NULL;
                    r.process := NULL; r.who := NULL;
                END IF;
            ELSE
                o_what := 10;
                v_leaves := v_ticket IS NOT NULL;
                v_freed := v_leaves AND v_ticket = h.number AND v_now >= r.blocked_until
                           AND v_weight < r.capacity;
            END IF;

        ELSIF v_verb = 4 THEN
            IF r.shared THEN
                UPDATE {schema}.lease_grant s SET granted = v_now, expires = v_now - 1
                WHERE s.key = v_key AND v_now < s.expires
                  AND p_fences[i] BETWEEN s.fence_first AND s.fence_last;
                o_what := CASE WHEN FOUND THEN 11 ELSE 12 END;
                IF o_what = 12 THEN
                    o_holders := {schema}.lease_holders_1(v_key, v_now);
                END IF;
            ELSIF v_live AND p_fences[i] BETWEEN r.fence_first AND r.fence_last THEN
                o_what := 11;
                -- An end before the beginning tells an operator's from time's.
                r.granted := v_now; r.expires := v_now - 1;
                v_written := true;
            ELSE
                o_what := 12;
                IF v_live THEN
                    o_holders := ARRAY[r.fence_first::text, r.fence_last::text, '1',
                                       r.attached::text, r.granted::text, r.expires::text,
                                       r.process, r.who];
                END IF;
            END IF;
            v_freed := o_what = 11;

        ELSE
            o_what := 13;
            v_written := true;
            v_freed := p_time[i] = 0 AND v_now < r.blocked_until;
            r.blocked_until := CASE WHEN p_time[i] = 0 THEN 0
                WHEN p_time[i] = forever THEN forever ELSE v_now + p_time[i] END;
            r.blocked_reason := CASE WHEN p_time[i] = 0 THEN NULL ELSE p_reason[i] END;
        END IF;

        IF o_what = 2 THEN
            o_code := {schema}.lease_watchers_1(v_key);
        ELSIF o_what = 10 THEN
            -- What became of it? Traces go with the next grant, so somebody else's means that one
            -- was given since.
            IF v_trace AND r.shared THEN
                o_code := CASE WHEN g.expires < g.granted THEN 3 ELSE 1 END;
            ELSIF coalesce(r.holder = v_holder, false) THEN
                o_code := CASE WHEN r.expires < r.granted THEN 3 ELSE 1 END;
            ELSIF r.shared THEN
                PERFORM FROM {schema}.lease_grant s
                WHERE s.key = v_key AND s.holder = v_holder;
                IF FOUND THEN
                    o_code := 3;
                ELSE
                    PERFORM FROM {schema}.lease_grant s WHERE s.key = v_key;
                    o_code := CASE WHEN FOUND THEN 2 ELSE 4 END;
                END IF;
            ELSE
                o_code := CASE WHEN r.holder IS NULL THEN 4 ELSE 2 END;
            END IF;
        END IF;

        IF v_leaves THEN
            DELETE FROM {schema}.lease_ticket t WHERE t.key = v_key AND t.number = v_ticket;
            SELECT * INTO h FROM {schema}.lease_ticket t
            WHERE t.key = v_key AND v_now < t.until ORDER BY t.key, t.number LIMIT 1;
            IF NOT FOUND THEN
                -- Who comes back to a queue of those whose time was over enters it anew.
                DELETE FROM {schema}.lease_ticket t WHERE t.key = v_key;
                r.queued := false;
                v_written := true;
            END IF;
        END IF;
        IF v_written AND v_known THEN
            UPDATE {schema}.lease l SET
                fence = r.fence, capacity = r.capacity, shared = r.shared, queued = r.queued,
                last_ticket = r.last_ticket, holder = r.holder, fence_first = r.fence_first,
                fence_last = r.fence_last, attached = r.attached, granted = r.granted,
                expires = r.expires, process = r.process, who = r.who, value = r.value,
                value_fence = r.value_fence, value_mark = r.value_mark,
                value_written = r.value_written, value_fresh_until = r.value_fresh_until,
                value_keep_until = r.value_keep_until, blocked_until = r.blocked_until,
                blocked_reason = r.blocked_reason
            WHERE l.key = v_key;
        END IF;

        -- A result is of use to everybody. Else the head of the queue is woken; without one, those
        -- who race.
        IF o_what IN (7, 8, 9) THEN
            IF h.number IS NOT NULL THEN
                o_waiters := true;
            ELSE
                v_asked := v_asked || i;
            END IF;
        END IF;
        IF v_freed THEN
            IF o_what <> 9 AND h.number IS NOT NULL THEN
                PERFORM pg_notify('dibs:' || h.process, v_key);
            ELSE
                v_wakes := v_wakes || v_key;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;

    -- After the last row is locked: whoever has registered before it looked at a key is seen.
    IF EXISTS (SELECT FROM {schema}.lease_waiter) THEN
        FOR n IN 1 .. cardinality(v_wakes) LOOP
            PERFORM {schema}.lease_wake_1(v_wakes[n], p_process);
        END LOOP;
        FOR n IN 1 .. cardinality(v_released) LOOP
            PERFORM {schema}.lease_wake_1(p_key[v_released[n]], p_process);
        END LOOP;
        o_what := 51;
        o_value := NULL; o_holders := NULL;
        FOR o_entry IN SELECT a FROM unnest(v_asked || v_released || v_renewed) AS a
                       WHERE EXISTS (SELECT FROM {schema}.lease_waiter w
                                     WHERE w.key = p_key[a] AND w.process <> p_process) LOOP
            RETURN NEXT;
        END LOOP;
    END IF;
END
$body$;

-- The process listens for these keys from now on, through the session p_pid.
CREATE FUNCTION {schema}.lease_watch_1(p_keys text[], p_process text, p_pid integer) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS
$body$
DECLARE
    v_started timestamptz := (SELECT a.backend_start FROM pg_stat_get_activity(p_pid) AS a);
    v_key text;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '500', true);
    FOREACH v_key IN ARRAY p_keys LOOP
        DELETE FROM {schema}.lease_waiter w WHERE w.ctid = ANY (ARRAY(
            SELECT o.ctid FROM {schema}.lease_waiter o
            WHERE o.key = v_key AND o.process <> p_process
              AND NOT {schema}.lease_listens_1(o.pid, o.started)
            FOR UPDATE SKIP LOCKED));
        INSERT INTO {schema}.lease_waiter AS w (key, process, pid, started)
        VALUES (v_key, p_process, p_pid, v_started)
        ON CONFLICT (key, process) DO UPDATE SET pid = excluded.pid, started = excluded.started;
    END LOOP;
END
$body$;

-- It does not any more; NULL: for none.
CREATE FUNCTION {schema}.lease_unwatch_1(p_keys text[], p_process text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS
$body$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '500', true);
    IF p_keys IS NULL THEN
        DELETE FROM {schema}.lease_waiter w WHERE w.process = p_process;
    ELSE
        DELETE FROM {schema}.lease_waiter w
        WHERE w.process = p_process AND w.key = ANY (p_keys);
    END IF;
END
$body$;

-- Records in the order of their keys, and a last row without a key when there are more.
CREATE FUNCTION {schema}.lease_list_1(p_prefix text, p_after text, p_limit bigint)
RETURNS TABLE (o_key text, o_now bigint, o_fence bigint, o_capacity bigint, o_holders text[],
               o_waiters bigint, o_queued bigint, o_queue text[], o_value bytea,
               o_value_fence bigint, o_value_mark boolean, o_value_written bigint,
               o_value_fresh_until bigint, o_value_keep_until bigint, o_blocked_until bigint,
               o_reason bytea)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS
$body$
DECLARE
    r {schema}.lease%ROWTYPE;
    v_now bigint := {schema}.lease_now_1();
    v_shown bigint := 0;
BEGIN
    o_now := v_now;
    FOR r IN SELECT * FROM {schema}.lease l
             WHERE l.key >= p_prefix COLLATE "C" AND l.key > p_after COLLATE "C"
             ORDER BY l.key LOOP
        EXIT WHEN NOT starts_with(r.key, p_prefix);
        o_key := NULL;
        IF v_shown = p_limit THEN
            RETURN NEXT;
            EXIT;
        END IF;
        v_shown := v_shown + 1;
        o_key := r.key; o_fence := r.fence; o_capacity := r.capacity;
        o_holders := NULL; o_queued := 0; o_queue := NULL; o_value := NULL; o_reason := NULL;
        IF r.shared THEN
            o_holders := {schema}.lease_holders_1(r.key, v_now);
        ELSIF r.holder IS NOT NULL AND v_now < r.expires THEN
            o_holders := ARRAY[r.fence_first::text, r.fence_last::text, '1', r.attached::text,
                               r.granted::text, r.expires::text, r.process, r.who];
        END IF;
        SELECT count(*) INTO o_waiters FROM {schema}.lease_waiter w
        WHERE w.key = r.key AND {schema}.lease_listens_1(w.pid, w.started);
        IF r.queued THEN
            SELECT count(*) INTO o_queued FROM {schema}.lease_ticket t
            WHERE t.key = r.key AND v_now < t.until;
            o_queue := ARRAY(
                SELECT part FROM (SELECT * FROM {schema}.lease_ticket t
                                  WHERE t.key = r.key AND v_now < t.until
                                  ORDER BY t.key, t.number LIMIT 100) AS t,
                       unnest(ARRAY[t.entered::text, t.process, t.who])
                       WITH ORDINALITY AS parts(part, n)
                ORDER BY t.number, n);
        END IF;
        IF r.value IS NOT NULL AND v_now < r.value_keep_until THEN
            o_value := r.value; o_value_fence := r.value_fence; o_value_mark := r.value_mark;
            o_value_written := r.value_written; o_value_fresh_until := r.value_fresh_until;
            o_value_keep_until := r.value_keep_until;
        END IF;
        o_blocked_until := r.blocked_until;
        o_reason := r.blocked_reason;
        RETURN NEXT;
    END LOOP;
END
$body$;

-- Forgets records that are free and past their keep, and whose fences keep rising by the clock.
-- Looks at so many after this key; the last one looked at, empty at the end.
CREATE FUNCTION {schema}.lease_purge_1(p_after text, p_looks bigint) RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS
$body$
DECLARE
    an_hour CONSTANT bigint := 3600000000;  -- how long a late finish finds the trace of its grant
    r {schema}.lease%ROWTYPE;
    v_now bigint := {schema}.lease_now_1();
    v_last text := '';
    v_looked bigint := 0;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '50', true);
    FOR r IN SELECT * FROM {schema}.lease l WHERE l.key > p_after COLLATE "C"
             ORDER BY l.key LIMIT p_looks LOOP
        v_looked := v_looked + 1;
        v_last := r.key;
        CONTINUE WHEN r.fence >= v_now - 1000000 OR r.blocked_until > v_now
            OR r.value_keep_until > v_now OR r.expires > v_now - an_hour;
        SELECT * INTO r FROM {schema}.lease l WHERE l.key = v_last FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND OR r.fence >= v_now - 1000000 OR r.blocked_until > v_now
            OR r.value_keep_until > v_now OR r.expires > v_now - an_hour;
        CONTINUE WHEN r.shared AND EXISTS (
            SELECT FROM {schema}.lease_grant s WHERE s.key = v_last AND s.expires > v_now - an_hour);
        CONTINUE WHEN r.queued AND EXISTS (
            SELECT FROM {schema}.lease_ticket t WHERE t.key = v_last AND t.until > v_now);
        CONTINUE WHEN EXISTS (
            SELECT FROM {schema}.lease_waiter w
            WHERE w.key = v_last AND {schema}.lease_listens_1(w.pid, w.started));
        DELETE FROM {schema}.lease_grant s WHERE s.key = v_last;
        DELETE FROM {schema}.lease_ticket t WHERE t.key = v_last;
        DELETE FROM {schema}.lease l WHERE l.key = v_last;
    END LOOP;
    RETURN CASE WHEN v_looked < p_looks THEN '' ELSE v_last END;
END
$body$;
