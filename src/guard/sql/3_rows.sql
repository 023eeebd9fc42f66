
-- ------------------------------------------------------------------------------------------------------ rows
-- A row is named by a JSON object of its columns, as '{"id": 1}'. These functions write with the rights of the
-- caller, under the caller's transaction, and in statements that others cannot come between.

-- `t.id = k.id AND …`, for k = jsonb_populate_record of `key`.
CREATE OR REPLACE FUNCTION {schema}.guard_match(key jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    made text;
BEGIN
    SELECT string_agg(format('t.%1$I = k.%1$I', c), ' AND ') INTO made FROM jsonb_object_keys(key) c;
    IF made IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'a row is named by its columns';
    END IF;
    RETURN made;
END
$f$;

-- The query that yields `1` for each row that `key` names, two at most; $1 is `key`.
CREATE OR REPLACE FUNCTION {schema}.guard_rows(relation regclass, key jsonb) RETURNS text
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    RETURN format('SELECT 1 FROM %1$s AS t, jsonb_populate_record(NULL::%1$s, $1) k WHERE %2$s LIMIT 2',
                  relation, {schema}.guard_match(key));
END
$f$;

-- Raises 21000 when `key` names several rows: these functions tell of one.
CREATE OR REPLACE FUNCTION {schema}.refuse_several(relation regclass, key jsonb) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    found_rows bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM (%s) s', {schema}.guard_rows(relation, key)) INTO found_rows USING key;
    IF found_rows > 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'cardinality_violation',
            MESSAGE = format('%s has several rows %s', relation, key),
            DETAIL = jsonb_build_object('table', relation::text, 'key', key)::text,
            HINT = 'Name the row by its primary key.';
    END IF;
END
$f$;

CREATE OR REPLACE FUNCTION {schema}.refuse_no_row(relation regclass, key jsonb) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'ZD004', MESSAGE = format('%s has no row %s', relation, key),
        DETAIL = jsonb_build_object('table', relation::text, 'key', key)::text;
END
$f$;

CREATE OR REPLACE FUNCTION {schema}.refuse_changed(relation regclass, given bigint, current bigint) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'ZD003',
        MESSAGE = format('%s: version %s was changed meanwhile, and is %s now', relation, given, current),
        DETAIL = jsonb_build_object('table', relation::text, 'version', given, 'current', current)::text,
        HINT = 'Read the row again, and decide anew.';
END
$f$;

-- The trigger of versioned tables: counts every change, also of those who know nothing of versions. Whoever sets
-- the version to something else than it is, or is to become, has read an older row.
CREATE OR REPLACE FUNCTION {schema}.count_version() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    IF NEW.version IS DISTINCT FROM OLD.version AND NEW.version IS DISTINCT FROM OLD.version + 1 THEN
        PERFORM {schema}.refuse_changed(TG_RELID::regclass, NEW.version::bigint, OLD.version::bigint);
    END IF;
    NEW.version := OLD.version + 1;
    RETURN NEW;
END
$f$;

-- Gives the table a column `version` that rises by 1 with every change of a row, whoever makes it.
-- Needs: ownership of the table.
CREATE OR REPLACE FUNCTION {schema}.versioned(relation regclass) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $f$
BEGIN
    PERFORM {schema}.guard_named(relation);
    IF EXISTS (SELECT FROM pg_attribute a
               WHERE a.attrelid = relation AND a.attname = 'version' AND NOT a.attisdropped
                 AND (a.atttypid NOT IN ('bigint'::regtype, 'integer'::regtype) OR NOT a.attnotnull
                      OR a.attgenerated <> '')) THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('%s has a column "version" already, and it is no bigint NOT NULL', relation);
    END IF;
    EXECUTE format('ALTER TABLE %s ADD COLUMN IF NOT EXISTS version bigint NOT NULL DEFAULT 1', relation);
    EXECUTE format('DROP TRIGGER IF EXISTS zzz_dibs_version ON %s', relation);
    EXECUTE format('CREATE TRIGGER zzz_dibs_version BEFORE UPDATE ON %s FOR EACH ROW '
                   'EXECUTE FUNCTION {schema}.count_version()', relation);
END
$f$;

-- Changes a row if its version is still the one that was read, and returns the new one. Raises ZD003 when it was
-- changed, ZD004 when it is gone. `changes`: the new values, as '{"stock": 7}'.
CREATE OR REPLACE FUNCTION {schema}.update_versioned(relation regclass, key jsonb, version bigint, changes jsonb)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    assignments text;
    made bigint;
    found_rows bigint;
BEGIN
    PERFORM {schema}.guard_named(relation);
    IF version IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'the version that was read is needed';
    END IF;
    SELECT string_agg(format('%1$I = c.%1$I', n), ', ') INTO assignments
        FROM jsonb_object_keys(changes - 'version') n;
    IF assignments IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'nothing is to be changed';
    END IF;
    EXECUTE format('UPDATE %1$s AS t SET %2$s, version = t.version + 1 '
                   'FROM jsonb_populate_record(NULL::%1$s, $1) k, jsonb_populate_record(NULL::%1$s, $2) c '
                   'WHERE %3$s AND t.version = $3 AND (SELECT count(*) FROM (%4$s) s) = 1 RETURNING t.version',
                   relation, assignments, {schema}.guard_match(key), {schema}.guard_rows(relation, key))
        INTO made USING key, changes, version;
    IF made IS NULL THEN
        PERFORM {schema}.refuse_several(relation, key);
        EXECUTE format('SELECT t.version FROM %1$s AS t, jsonb_populate_record(NULL::%1$s, $1) k WHERE %2$s',
                       relation, {schema}.guard_match(key))
            INTO made USING key;
        GET DIAGNOSTICS found_rows = ROW_COUNT;
        IF found_rows = 0 THEN
            PERFORM {schema}.refuse_no_row(relation, key);
        ELSIF made IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
                MESSAGE = format('%s: the row %s has no version', relation, key);
        END IF;
        PERFORM {schema}.refuse_changed(relation, version, made);
    END IF;
    RETURN made;
END
$f$;

-- Takes `amount` out of a column if that much is there. outcome: `taken`, `too_little` (nothing was taken) or
-- `no_row`; remaining: what is there afterwards. Raises 22023 when the column cannot hold exactly what would remain:
-- half of an integer.
CREATE OR REPLACE FUNCTION {schema}.take(relation regclass, key jsonb, column_name name, amount numeric,
                                         OUT outcome text, OUT remaining numeric)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    type_now text;
    rest text;
    exact boolean;
BEGIN
    PERFORM {schema}.guard_named(relation);
    -- NaN is larger than all numbers, and PostgreSQL 13 knows no infinity by its name.
    IF amount IS NULL OR amount <= 0 OR amount::text IN ('NaN', 'Infinity') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the amount is a number larger than 0';
    END IF;
    SELECT format_type(a.atttypid, a.atttypmod) INTO type_now FROM pg_attribute a
        WHERE a.attrelid = relation AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
    IF type_now IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_column',
            MESSAGE = format('%s has no column "%s"', relation, column_name);
    END IF;
    -- Whether the column keeps all of the difference. Only asked where the difference is in the column's range.
    rest := format('CASE WHEN t.%1$I >= $2 THEN (t.%1$I - $2)::%2$s::numeric = t.%1$I::numeric - $2 END',
                   column_name, type_now);
    LOOP
        EXECUTE format('UPDATE %1$s AS t SET %2$I = t.%2$I - $2 FROM jsonb_populate_record(NULL::%1$s, $1) k '
                       'WHERE %3$s AND %4$s AND (SELECT count(*) FROM (%5$s) s) = 1 RETURNING t.%2$I',
                       relation, column_name, {schema}.guard_match(key), rest, {schema}.guard_rows(relation, key))
            INTO remaining USING key, amount;
        IF remaining IS NOT NULL THEN
            outcome := 'taken';
            RETURN;
        END IF;
        PERFORM {schema}.refuse_several(relation, key);
        -- Locked, so that what is told is also what holds.
        EXECUTE format('SELECT coalesce(t.%2$I, 0), %4$s FROM %1$s AS t, jsonb_populate_record(NULL::%1$s, $1) k '
                       'WHERE %3$s FOR NO KEY UPDATE OF t', relation, column_name, {schema}.guard_match(key), rest)
            INTO remaining, exact USING key, amount;
        IF remaining IS NULL THEN
            outcome := 'no_row';
            RETURN;
        ELSIF remaining < amount THEN
            outcome := 'too_little';
            RETURN;
        ELSIF NOT exact THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('%s - %s is no exact %s: nothing was taken', remaining, amount, type_now);
        END IF;
        -- Somebody brought more between the two; ours is the lock now.
    END LOOP;
END
$f$;

-- Locks a row until the end of the transaction and returns it, NULL when there is none. Raises 55P03
-- (lock_not_available) when somebody else has it for longer than `wait`; 0: at once; NULL: as lock_timeout says.
CREATE OR REPLACE FUNCTION {schema}.lock_row(relation regclass, key jsonb, wait interval DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    before text := current_setting('lock_timeout');
    got jsonb;
BEGIN
    PERFORM {schema}.guard_named(relation);
    IF wait IS NOT NULL THEN
        -- NOWAIT alone waits still for whoever has the version of a row that was committed a moment ago.
        PERFORM set_config('lock_timeout', {schema}.guard_patience(wait), true);
    END IF;
    PERFORM {schema}.refuse_several(relation, key);
    EXECUTE format('SELECT to_jsonb(t) FROM %1$s AS t, jsonb_populate_record(NULL::%1$s, $1) k '
                   'WHERE %2$s FOR UPDATE OF t%3$s', relation, {schema}.guard_match(key),
                   CASE WHEN wait <= interval '0' THEN ' NOWAIT' ELSE '' END)
        INTO got USING key;
    PERFORM set_config('lock_timeout', before, true);
    RETURN got;
END
$f$;

-- What SKIP LOCKED lets one lock, waiting for nobody. By itself it waits still for whoever has the version of a row
-- that was committed a moment ago (heap_lock_updated_tuple of PostgreSQL takes no policy). So it gets little time, and
-- a new snapshot after that; in the end the caller's own lock_timeout counts, for locks of the table and its indexes.
CREATE OR REPLACE FUNCTION {schema}.guard_lock_free(query text, vals text[])
RETURNS jsonb[]
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    before text := current_setting('lock_timeout');
    got jsonb[];
BEGIN
    FOR attempt IN 1..5 LOOP
        BEGIN
            PERFORM set_config('lock_timeout', '1ms', true);
            EXECUTE query INTO got USING vals;
            PERFORM set_config('lock_timeout', before, true);
            RETURN got;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    EXECUTE query INTO got USING vals;
    RETURN got;
END
$f$;

-- Locks several rows in the order of `column_name`, and where they have the same there in that of the primary key,
-- whatever `vals` are, so that two callers never wait for each other in a circle. `skip_locked`: those that others
-- have are left out. Returns what was locked.
CREATE OR REPLACE FUNCTION {schema}.lock_rows(relation regclass, column_name name, vals text[],
                                              skip_locked boolean DEFAULT false)
RETURNS SETOF jsonb
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    type_now text;
    behind text;
    query text;
BEGIN
    PERFORM {schema}.guard_named(relation);
    SELECT format_type(a.atttypid, a.atttypmod) INTO type_now FROM pg_attribute a
        WHERE a.attrelid = relation AND a.attname = column_name AND NOT a.attisdropped;
    IF type_now IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_column',
            MESSAGE = format('%s has no column "%s"', relation, column_name);
    END IF;
    -- A sort leaves rows that are equal in an order that depends on all the others. Without a primary key: in that of
    -- their places, which stay as long as nobody changes the rows, and which a view does not tell.
    SELECT coalesce(string_agg(format(', t.%I', a.attname), '' ORDER BY k.n),
                    CASE (SELECT c.relkind FROM pg_class c WHERE c.oid = relation)
                        WHEN 'r' THEN ', t.tableoid, t.ctid' WHEN 'p' THEN ', t.tableoid, t.ctid' ELSE '' END) INTO behind
        FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, n)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
        WHERE i.indrelid = relation AND i.indisprimary AND k.n <= i.indnkeyatts;
    query := format('SELECT to_jsonb(t) AS got FROM %1$s AS t WHERE t.%2$I = ANY($1::%3$s[]) '
                    'ORDER BY t.%2$I%4$s FOR UPDATE OF t', relation, column_name, type_now, behind);
    IF skip_locked THEN
        RETURN QUERY SELECT unnest({schema}.guard_lock_free(
            format('SELECT array_agg(s.got) FROM (%s SKIP LOCKED) AS s', query), vals));
    ELSE
        RETURN QUERY EXECUTE query USING vals;
    END IF;
END
$f$;
