
-- -------------------------------------------------------------------------------------------------- requests
-- The work of a request and the answer to it are committed together: either both are there, or neither, and the
-- request may be made again.

-- outcome: `run`: do the work, then finish_request(); `replay`: it was done, `result` is what it was answered;
-- `in_flight`: somebody else is at it just now, and nothing was done. Raises ZD005 when the key was used for another
-- payload. `wait`: how long to wait for somebody else; NULL: not at all.
CREATE OR REPLACE FUNCTION {schema}.begin_request(key text, payload text, wait interval DEFAULT NULL,
                                                  OUT outcome text, OUT result text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    hash bytea := sha256(convert_to(payload, 'UTF8'));
    begun jsonb := coalesce(nullif(current_setting('dibs.requests', true), ''), '{}');
    earlier record;
    kept boolean;
BEGIN
    IF key IS NULL OR key = '' OR payload IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'a request needs a key and a payload';
    ELSIF octet_length(key) > 1024 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the key of a request has up to 1024 bytes';
    END IF;
    IF NOT {schema}.xact_lock(('request ' || begin_request.key)::text,
                              coalesce(wait, interval '0')::interval) THEN
        outcome := 'in_flight';
        RETURN;
    END IF;
    SELECT r.payload, r.result, r.expires_at <= clock_timestamp() AS expired INTO earlier
        FROM {schema}.guard_request r WHERE r.key = begin_request.key;
    kept := FOUND AND NOT earlier.expired;
    IF kept AND earlier.payload <> hash OR begun ->> begin_request.key <> encode(hash, 'hex') THEN
        RAISE EXCEPTION USING ERRCODE = 'ZD005',
            MESSAGE = format('request key "%s" was used for another payload', begin_request.key),
            DETAIL = jsonb_build_object('key', begin_request.key)::text,
            HINT = 'Each request needs a key of its own; its repetitions have the same payload.';
    END IF;
    IF kept THEN
        outcome := 'replay';
        result := earlier.result;
        RETURN;
    END IF;
    -- Gone again when the transaction, or the savepoint around this, is rolled back.
    PERFORM set_config('dibs.requests',
                       (begun || jsonb_build_object(begin_request.key, encode(hash, 'hex')))::text, true);
    outcome := 'run';
END
$f$;

-- Leaves the answer of a request that was begun in this transaction, to be replayed for `keep` after the commit.
CREATE OR REPLACE FUNCTION {schema}.finish_request(key text, result text, keep interval DEFAULT '7 days')
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    begun jsonb := coalesce(nullif(current_setting('dibs.requests', true), ''), '{}');
    hash text := begun ->> key;
BEGIN
    IF hash IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('request "%s" was not begun in this transaction', key);
    ELSIF keep IS NULL OR keep <= interval '0' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'keep is longer than 0';
    END IF;
    DELETE FROM {schema}.guard_request r
        WHERE r.key = finish_request.key AND r.expires_at <= clock_timestamp();
    BEGIN
        INSERT INTO {schema}.guard_request(key, payload, result, expires_at)
            VALUES (finish_request.key, decode(hash, 'hex'), finish_request.result, clock_timestamp() + keep);
    EXCEPTION WHEN unique_violation THEN
        -- Committed by somebody else whom this transaction's snapshot does not show.
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
            MESSAGE = format('request "%s" was finished by another transaction', key);
    END;
    PERFORM set_config('dibs.requests', (begun - key)::text, true);
    PERFORM {schema}.purge_requests(4::int);
END
$f$;

-- Forgets requests whose time is over, at most so many. finish_request() does a few each time.
CREATE OR REPLACE FUNCTION {schema}.purge_requests(at_most int DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM {schema}.guard_request r WHERE r.key IN (
        SELECT q.key FROM {schema}.guard_request q WHERE q.expires_at <= clock_timestamp()
        ORDER BY q.expires_at LIMIT at_most FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$f$;
