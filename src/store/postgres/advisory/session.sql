-- SPDX-License-Identifier: Apache-2.0
-- What postgres+advisory:// adds to the tables of schema.sql: whoever holds a key has an advisory lock
-- in a session of its own, and its row in `lease` says who that is. {schema} is the quoted name of the
-- schema, {hash} how names become the numbers of locks.
--
-- A grant has no expiry: its row says `expires` for ever, and `process` names the session,
-- `process:mark`, 16 digits each. A session is alive as long as the lock of its mark, in the space of
-- two integers, is taken; so all that a dead session left in rows is known to be dead, also where
-- another session has the number of its process by now. Rows are locked before advisory locks are
-- tried for, and nothing ever waits for an advisory lock.

-- That this schema is used in this way, by one method for all.
CREATE TABLE {schema}.lease_session (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    hash text NOT NULL
);
INSERT INTO {schema}.lease_session (hash) VALUES ({hash});

CREATE FUNCTION {schema}.session_mark_1(p_session text, p_half integer) RETURNS integer
LANGUAGE sql IMMUTABLE AS
$body$ SELECT ('x' || substr(p_session, 18 + 8 * p_half, 8))::bit(32)::integer $body$;

-- Whether that session is there. Asks by the shared lock of its mark, so that two may ask at a time.
CREATE FUNCTION {schema}.session_lives_1(p_session text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS
$body$
DECLARE
    v_high integer;
    v_low integer;
BEGIN
    IF p_session IS NULL OR length(p_session) <> 33 THEN
        RETURN false;
    END IF;
    IF p_session = current_setting('dibs.session', true) THEN
        RETURN true;
    END IF;
    v_high := {schema}.session_mark_1(p_session, 0);
    v_low := {schema}.session_mark_1(p_session, 1);
    IF pg_try_advisory_lock_shared(v_high, v_low) THEN
        PERFORM pg_advisory_unlock_shared(v_high, v_low);
        RETURN false;
    END IF;
    RETURN true;
END
$body$;

-- This session is p_session from now on, once none of p_formers is there any more; with p_end they are
-- ended, if need be: a client whose connection broke has lost its leases, and keeps nobody waiting.
-- False: one is still there.
CREATE FUNCTION {schema}.session_begin_1(p_session text, p_formers text[], p_end boolean)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS
$body$
DECLARE
    v_former text;
BEGIN
    FOREACH v_former IN ARRAY p_formers LOOP
        CONTINUE WHEN NOT {schema}.session_lives_1(v_former);
        IF NOT p_end THEN
            RETURN false;
        END IF;
        BEGIN
            PERFORM pg_terminate_backend(l.pid, 1000) FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
              AND l.classid::bigint
                  = ({schema}.session_mark_1(v_former, 0)::bigint & 4294967295)
              AND l.objid::bigint
                  = ({schema}.session_mark_1(v_former, 1)::bigint & 4294967295)
              AND l.database = (SELECT d.oid FROM pg_database d
                                WHERE d.datname = current_database());
        EXCEPTION WHEN insufficient_privilege THEN
            RETURN false;
        END;
        IF {schema}.session_lives_1(v_former) THEN
            RETURN false;
        END IF;
    END LOOP;
    IF NOT pg_try_advisory_lock({schema}.session_mark_1(p_session, 0),
                                {schema}.session_mark_1(p_session, 1)) THEN
        RETURN false;
    END IF;
    PERFORM set_config('dibs.session', p_session, false);
    RETURN true;
END
$body$;

-- A batch, as lease_execute_1, of exclusive grants. p_lock: the number of the key's lock; no number
-- occurs twice. p_stand says what this session has of it: 0 nothing, 1 the grant of this very holder,
-- 2 another one. p_flags: 1 attached, 2 late, 8 simple.
--
-- Answers as there, and besides: 0 with code 4: the lease is another session's; 52: the lock of this
-- entry was not held when it was given back.
CREATE FUNCTION {schema}.session_execute_1(
    p_verb bigint[], p_key text[], p_holder bytea[], p_time bigint[], p_fences bigint[],
    p_floor bigint[], p_lock bigint[], p_stand bigint[], p_flags bigint[], p_seen bigint[],
    p_not_after bigint[], p_queue bigint[], p_value bytea[], p_fresh bigint[], p_keep bigint[],
    p_adopter bytea[], p_reason bytea[], p_process text, p_who text, p_alone boolean,
    p_patience bigint, p_session text)
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
    -- Somebody who is no client of ours tells nobody when it lets go.
    strangers_are_looked_at_after CONSTANT bigint := 100000;
    r {schema}.lease%ROWTYPE;
    h {schema}.lease_ticket%ROWTYPE;
    i bigint;
    v_verb bigint;
    v_key text;
    v_holder bytea;
    v_now bigint;
    v_known boolean;
    v_mine boolean;       -- this holder holds the key
    v_own boolean;        -- this session has the lock for it
    v_result boolean;     -- a result is readable
    v_ticket bigint;      -- of this holder, if it has one
    v_leaves boolean;     -- that ticket ends
    v_written boolean;    -- the row is to be written
    v_freed boolean;      -- whoever waits may have the key
    v_durable boolean := false;
    v_base bigint;
    v_until bigint;
    v_wakes text[] := '{}';
    v_asked bigint[] := '{}';
    v_count bigint := coalesce(array_length(p_key, 1), 0);
    v_tried bigint[] := '{}';  -- locks taken in this statement
    v_lets_go bigint[] := '{}';  -- entries whose locks are given back at its end
BEGIN
    IF current_setting('dibs.session', true) IS DISTINCT FROM p_session THEN
        RAISE EXCEPTION 'this session is not the one that holds the locks' USING ERRCODE = 'DBS02';
    END IF;
    -- A crash of the server ends every session, so a bare grant need not survive it; its fence is no
    -- larger than the clock, unless it is seen to below.
    FOR n IN 1 .. v_count LOOP
        v_durable := v_durable OR p_value[n] IS NOT NULL OR p_verb[n] = 5;
    END LOOP;
    IF NOT v_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    PERFORM set_config('lock_timeout', p_patience::text, true);

    FOR n IN 1 .. v_count LOOP
        i := n;
        o_entry := i;
        v_verb := p_verb[i];
        v_key := p_key[i];
        v_holder := p_holder[i];
        v_own := p_stand[i] = 1;
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
            IF NOT p_alone AND v_verb IN (2, 3, 4) THEN
                PERFORM FROM {schema}.lease l WHERE l.key = v_key;
                IF FOUND THEN
                    o_what := 50;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
            END IF;
            v_now := (date_part('epoch', clock_timestamp()) * 1000000::float8)::bigint;
            IF v_verb = 5 OR (v_verb = 1 AND (p_not_after[i] IS NULL OR v_now <= p_not_after[i])) THEN
                INSERT INTO {schema}.lease AS l (key) VALUES (v_key)
                ON CONFLICT (key) DO NOTHING RETURNING * INTO r;
                IF NOT FOUND THEN
                    o_what := 50;
                    RETURN NEXT;
                    CONTINUE;
                END IF;
                v_known := true;
            ELSE
                r.fence := 0; r.queued := false; r.last_ticket := 0; r.blocked_until := 0;
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
            o_value := r.value; o_value_fence := r.value_fence; o_value_mark := r.value_mark;
            o_value_written := r.value_written; o_value_fresh_until := r.value_fresh_until;
            o_value_keep_until := r.value_keep_until;
        END IF;
        -- Revoked: an end before the beginning.
        v_mine := v_own AND coalesce(r.holder = v_holder AND r.process = p_session
                                     AND r.expires = forever, false);

        h.number := NULL;
        IF r.queued THEN
            LOOP
                SELECT * INTO h FROM {schema}.lease_ticket t
                WHERE t.key = v_key ORDER BY t.key, t.number LIMIT 1;
                -- Whoever comes back by another session keeps its place, unless it was passed over.
                EXIT WHEN NOT FOUND
                    OR v_now < h.until AND (h.holder = v_holder
                                            OR {schema}.session_lives_1(h.process));
                DELETE FROM {schema}.lease_ticket t WHERE t.key = v_key AND t.number = h.number;
            END LOOP;
            IF h.number IS NULL THEN
                r.queued := false;
                v_written := true;
            ELSIF v_verb IN (1, 3) THEN
                SELECT t.number, t.until INTO v_ticket, v_until FROM {schema}.lease_ticket t
                WHERE t.key = v_key AND t.holder = v_holder;
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
                o_first := r.fence_first; o_last := r.fence_last;
            ELSIF v_now < r.blocked_until THEN
                o_what := 4;
                o_reason := r.blocked_reason;
                o_retry := CASE WHEN r.blocked_until = forever THEN forever
                                ELSE r.blocked_until - v_now END;
            ELSE
                IF p_stand[i] = 0 AND pg_try_advisory_lock(p_lock[i]) THEN
                    v_tried := v_tried || p_lock[i];
                    v_own := true;
                END IF;
                IF NOT v_own THEN
                    o_what := 2;
                    IF r.holder IS NOT NULL AND {schema}.session_lives_1(r.process) THEN
                        o_retry := forever;
                        o_holders := ARRAY[r.fence_first::text, r.fence_last::text, '1',
                                           r.attached::text, r.granted::text, r.expires::text,
                                           r.process, r.who];
                    ELSE
                        -- By another program, or under another name with the same number.
                        o_retry := strangers_are_looked_at_after;
                        o_holders := ARRAY['0', '0', '1', 'true', v_now::text, forever::text, '',
                                           ''];
                    END IF;
                ELSIF v_result AND v_now < r.value_fresh_until AND r.value_fence > p_seen[i] THEN
                    o_what := 3;
                    v_leaves := v_ticket IS NOT NULL;
                    v_freed := v_leaves AND v_ticket = h.number;
                ELSIF h.number IS NOT NULL AND h.number IS DISTINCT FROM v_ticket THEN
                    o_what := 2;
                    o_retry := h.until - v_now;
                    IF split_part(h.process, ':', 1) <> p_process THEN
                        PERFORM pg_notify('dibs:' || split_part(h.process, ':', 1), v_key);
                    END IF;
                ELSE
                    v_base := greatest(r.fence, p_floor[i]);
                    IF v_base = forever THEN
                        o_what := 0; o_code := 2;
                    ELSE
                        IF v_now <= v_base THEN
                            o_first := v_base + 1; o_last := v_base + 1;
                            PERFORM set_config('synchronous_commit', 'on', true);
                        ELSE
                            o_first := greatest(v_now - p_fences[i] + 1, v_base + 1);
                            o_last := v_now;
                        END IF;
                        o_what := 1;
                        o_expires := v_now + p_time[i];
                        v_written := true;
                        v_leaves := v_ticket IS NOT NULL;
                        r.fence := o_last;
                        r.holder := v_holder; r.fence_first := o_first; r.fence_last := o_last;
                        r.attached := true; r.granted := v_now; r.expires := forever;
                        r.process := p_session; r.who := p_who;
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
            END IF;
            IF o_what IN (2, 4) AND p_queue[i] > 0 THEN
                IF v_ticket IS NULL THEN
                    r.last_ticket := r.last_ticket + 1;
                    r.queued := true;
                    v_written := true;
                    v_ticket := r.last_ticket;
                    INSERT INTO {schema}.lease_ticket
                        (key, number, holder, entered, until, process, who)
                    VALUES (v_key, v_ticket, v_holder, v_now, v_now + p_queue[i], p_session,
                            p_who);
                ELSE
                    UPDATE {schema}.lease_ticket t
                    SET until = v_now + p_queue[i], process = p_session, who = p_who
                    WHERE t.key = v_key AND t.number = v_ticket;
                END IF;
                o_ticket := v_ticket;
                SELECT count(*) + 1 INTO o_position FROM (
                    SELECT FROM {schema}.lease_ticket t
                    WHERE t.key = v_key AND t.number < v_ticket AND v_now < t.until
                    LIMIT 1000) AS before;
            END IF;
            IF v_own AND o_what <> 1 THEN
                v_lets_go := v_lets_go || i;
            END IF;

        ELSIF v_verb = 2 THEN
            IF NOT v_mine THEN
                o_what := 10;
            ELSIF p_fences[i] > 0 AND r.fence = forever THEN
                o_what := 0; o_code := 2;
            ELSE
                o_what := 7;
                o_expires := v_now + p_time[i];
                o_first := r.fence_first; o_last := r.fence_last;
                IF p_fences[i] > 0 THEN
                    IF v_now <= r.fence THEN
                        o_first := r.fence + 1; o_last := r.fence + 1;
                        PERFORM set_config('synchronous_commit', 'on', true);
                    ELSE
                        o_first := greatest(v_now - p_fences[i] + 1, r.fence + 1);
                        o_last := v_now;
                    END IF;
                    r.fence := o_last;
                    r.fence_first := o_first; r.fence_last := o_last;
                    v_written := true;
                END IF;
                IF p_adopter[i] IS NOT NULL THEN
                    r.holder := p_adopter[i];
                    v_written := true;
                END IF;
            END IF;

        ELSIF v_verb = 3 THEN
            IF v_mine OR (p_value[i] IS NOT NULL AND p_flags[i] & 2 = 2
                          AND coalesce(r.holder = v_holder AND r.expires >= r.granted
                                       AND r.fence_last = r.fence, false)
                          AND NOT {schema}.session_lives_1(r.process)) THEN
                o_what := 8;
                v_freed := true;
                v_written := true;
                IF p_value[i] IS NOT NULL THEN
                    o_what := 9;
                    r.value := p_value[i]; r.value_fence := r.fence_last; r.value_mark := false;
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
                r.holder := NULL; r.fence_first := NULL; r.fence_last := NULL;
                r.attached := NULL; r.granted := NULL; r.expires := NULL;
                r.process := NULL; r.who := NULL;
            ELSE
                o_what := 10;
                v_leaves := v_ticket IS NOT NULL;
                v_freed := v_leaves AND v_ticket = h.number AND v_now >= r.blocked_until;
            END IF;
            IF v_own THEN
                v_lets_go := v_lets_go || i;
            END IF;

        ELSIF v_verb = 4 THEN
            IF r.holder IS NOT NULL AND r.expires = forever
               AND {schema}.session_lives_1(r.process) THEN
                IF p_fences[i] BETWEEN r.fence_first AND r.fence_last THEN
                    -- Its session lets go when it hears of it, or at its next renewal.
                    o_what := 11;
                    r.granted := v_now; r.expires := v_now - 1;
                    v_written := true;
                    PERFORM pg_notify('dibs:' || split_part(r.process, ':', 1), E'\x01' || v_key);
                ELSE
                    o_what := 12;
                    o_holders := ARRAY[r.fence_first::text, r.fence_last::text, '1',
                                       r.attached::text, r.granted::text, r.expires::text,
                                       r.process, r.who];
                END IF;
            ELSE
                o_what := 12;
            END IF;

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
            IF coalesce(r.holder = v_holder, false) THEN
                o_code := CASE WHEN r.expires < r.granted THEN 3 ELSE 4 END;
                IF o_code = 4 AND r.process <> p_session
                   AND {schema}.session_lives_1(r.process) THEN
                    o_what := 0; o_code := 4;
                END IF;
            ELSE
                o_code := CASE WHEN r.holder IS NULL THEN 4 ELSE 2 END;
            END IF;
            IF v_own THEN
                v_freed := true;
                IF v_verb = 2 THEN
                    v_lets_go := v_lets_go || i;
                END IF;
            END IF;
        END IF;

        IF v_leaves THEN
            DELETE FROM {schema}.lease_ticket t WHERE t.key = v_key AND t.number = v_ticket;
            SELECT * INTO h FROM {schema}.lease_ticket t
            WHERE t.key = v_key AND v_now < t.until ORDER BY t.key, t.number LIMIT 1;
            IF NOT FOUND THEN
                DELETE FROM {schema}.lease_ticket t WHERE t.key = v_key;
                r.queued := false;
                v_written := true;
            END IF;
        END IF;
        IF v_written AND v_known THEN
            UPDATE {schema}.lease l SET
                fence = r.fence, queued = r.queued, last_ticket = r.last_ticket,
                holder = r.holder, fence_first = r.fence_first,
                fence_last = r.fence_last, attached = r.attached, granted = r.granted,
                expires = r.expires, process = r.process, who = r.who, value = r.value,
                value_fence = r.value_fence, value_mark = r.value_mark,
                value_written = r.value_written, value_fresh_until = r.value_fresh_until,
                value_keep_until = r.value_keep_until, blocked_until = r.blocked_until,
                blocked_reason = r.blocked_reason
            WHERE l.key = v_key;
        END IF;

        IF o_what IN (7, 8, 9) THEN
            IF h.number IS NOT NULL THEN
                o_waiters := true;
            ELSE
                v_asked := v_asked || i;
            END IF;
        END IF;
        IF v_freed THEN
            IF o_what <> 9 AND h.number IS NOT NULL THEN
                PERFORM pg_notify('dibs:' || split_part(h.process, ':', 1), v_key);
            ELSE
                v_wakes := v_wakes || v_key;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;

    o_value := NULL; o_holders := NULL; o_reason := NULL;
    IF EXISTS (SELECT FROM {schema}.lease_waiter) THEN
        FOR n IN 1 .. cardinality(v_wakes) LOOP
            PERFORM {schema}.lease_wake_1(v_wakes[n], p_process);
        END LOOP;
        o_what := 51;
        FOR o_entry IN SELECT a FROM unnest(v_asked) AS a
                       WHERE EXISTS (SELECT FROM {schema}.lease_waiter w
                                     WHERE w.key = p_key[a] AND w.process <> p_process) LOOP
            RETURN NEXT;
        END LOOP;
    END IF;
    -- Last of all: what is given back cannot be taken back when a later step fails.
    o_what := 52;
    FOREACH o_entry IN ARRAY v_lets_go LOOP
        IF NOT pg_advisory_unlock(p_lock[o_entry]) THEN
            RETURN NEXT;
        END IF;
    END LOOP;
EXCEPTION WHEN query_canceled OR assert_failure OR OTHERS THEN
    -- Advisory locks stay when a transaction is undone.
    FOR n IN 1 .. cardinality(v_tried) LOOP
        PERFORM pg_advisory_unlock(v_tried[n]);
    END LOOP;
    RAISE;
END
$body$;

-- Rows that dead sessions left: their traces end, and some time later the records do.
CREATE FUNCTION {schema}.session_purge_1(p_after text, p_looks bigint) RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS
$body$
DECLARE
    forever CONSTANT bigint := 9223372036854775807;
    v_now bigint := {schema}.lease_now_1();
    v_key text;
    v_process text;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '50', true);
    FOR v_key, v_process IN
        SELECT s.key, s.process FROM (
            SELECT l.key, l.process, l.expires FROM {schema}.lease l
            WHERE l.key > p_after COLLATE "C" ORDER BY l.key LIMIT p_looks) AS s
        WHERE s.expires = forever LOOP
        CONTINUE WHEN {schema}.session_lives_1(v_process);
        UPDATE {schema}.lease l SET expires = greatest(l.granted, v_now)
        WHERE l.ctid = (SELECT o.ctid FROM {schema}.lease o
                        WHERE o.key = v_key AND o.process = v_process AND o.expires = forever
                        FOR UPDATE SKIP LOCKED);
    END LOOP;
    RETURN {schema}.lease_purge_1(p_after, p_looks);
END
$body$;
