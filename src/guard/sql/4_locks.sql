
-- ----------------------------------------------------------------------------------------------------- locks

-- The number of a name for advisory locks: the first 8 bytes, big-endian and signed, of the SHA-256 of "dibs", a
-- zero byte and the name in UTF-8. It does not change between releases, of dibs or of PostgreSQL.
CREATE OR REPLACE FUNCTION {schema}.lock_number(name text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT ('x' || encode(substr(sha256(decode('6469627300', 'hex') || convert_to(name, 'UTF8')), 1, 8), 'hex'))
           ::bit(64)::bigint
$f$;

-- Whether the name is this transaction's now, until its end. What the transaction does outside of this database is
-- not protected: it may be ended by the server at any time.
-- In REPEATABLE READ the snapshot may be of before the lock: take it in READ COMMITTED, or as the first statement and
-- without waiting.
CREATE OR REPLACE FUNCTION {schema}.try_xact_lock(name text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    IF name IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'a lock needs a name';
    END IF;
    RETURN pg_try_advisory_xact_lock({schema}.lock_number(name));
END
$f$;

-- The same, waiting in the server: false when somebody else has it for longer than `wait`; NULL: as lock_timeout
-- says. Whoever waits here holds back VACUUM, and CREATE INDEX CONCURRENTLY stands still for it; for long waits call
-- try_xact_lock() again and again instead.
CREATE OR REPLACE FUNCTION {schema}.xact_lock(name text, wait interval DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    IF name IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'a lock needs a name';
    END IF;
    IF wait <= interval '0' THEN
        RETURN {schema}.try_xact_lock(name);
    END IF;
    BEGIN
        IF wait IS NOT NULL THEN
            PERFORM set_config('lock_timeout', {schema}.guard_patience(wait), true);
        END IF;
        PERFORM pg_advisory_xact_lock({schema}.lock_number(name));
        PERFORM set_config('lock_timeout', before, true);
        RETURN true;
    EXCEPTION WHEN lock_not_available THEN
        RETURN false;
    END;
END
$f$;
