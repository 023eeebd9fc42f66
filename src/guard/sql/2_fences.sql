
-- ---------------------------------------------------------------------------------------------------- fences

-- All calls among these functions give exactly the types that are declared, by a cast where the type is not plain:
-- so no other function of the same name can ever fit better.

-- Where the refusals of a table are counted: a sequence that belongs to its column `fence`, and goes with it.
CREATE OR REPLACE FUNCTION {schema}.guard_counter(relation regclass) RETURNS regclass
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT s.oid::regclass FROM pg_depend d JOIN pg_class s ON s.oid = d.objid
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a'
      AND d.refobjid = coalesce(pg_partition_root(relation), relation)
      AND s.relkind = 'S' AND s.relname ~ '^dibs_refused_[0-9a-f]{16}$'
    ORDER BY s.oid LIMIT 1
$f$;

-- The sequence that a trigger's first argument names: `owned`, or, of before version 2, one in this schema. Anybody
-- may have written it, so it is not read as a name: one that is none would be an error to all who ask for a report.
CREATE OR REPLACE FUNCTION {schema}.guard_counter_named(named text, relation regclass) RETURNS regclass
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT CASE WHEN named = 'owned' THEN {schema}.guard_counter(relation)
                WHEN named = {schema_text} || '.refused_claims' THEN to_regclass(named)
                ELSE (SELECT s.oid::regclass FROM pg_class s
                      WHERE named = format('%s.%I', {schema_text}, s.relname) AND s.relkind = 'S'
                        AND s.relnamespace = {schema_text}::regnamespace
                        AND s.relname ~ '^refused_[0-9a-f]{8}-[0-9a-f]{4}$') END
$f$;

-- What a counter has counted. TRUNCATE … RESTART IDENTITY takes it back to its start: see guard_keep_count().
CREATE OR REPLACE FUNCTION {schema}.guard_counted(counter regclass) RETURNS bigint
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT coalesce(pg_sequence_last_value(counter),
                    (SELECT s.seqstart - 1 FROM pg_sequence s WHERE s.seqrelid = counter), 0)
$f$;

-- The two counters of a key, one in each row of 32. Others may share either.
CREATE OR REPLACE FUNCTION {schema}.guard_key_counters(key text) RETURNS regclass[]
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT ARRAY(SELECT format('%s.refused_%s_%s', {schema_text}, r,
                               get_byte(sha256(convert_to(key, 'UTF8')), r) % 32)::regclass
                 FROM generate_series(1, 2) r)
$f$;

-- How many writes and claims under the key were refused: never too few, and too many where others share both of its
-- counters, of which there are 1,024 pairs.
CREATE OR REPLACE FUNCTION {schema}.guard_refused(key text) RETURNS bigint
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT min({schema}.guard_counted(c)) FROM unnest({schema}.guard_key_counters(key)) c
$f$;

-- Counts a refusal for good: nextval() is what a rollback does not take back. Whoever may not count is refused all the
-- same.
CREATE OR REPLACE FUNCTION {schema}.guard_note(counter text, relation regclass, key text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    PERFORM nextval({schema}.guard_counter_named(counter, relation));
    IF key IS NOT NULL THEN
        PERFORM nextval(c) FROM unnest({schema}.guard_key_counters(key)) c;
    END IF;
EXCEPTION WHEN insufficient_privilege OR undefined_table OR read_only_sql_transaction OR
               character_not_in_repertoire OR untranslatable_character THEN
    NULL;
END
$f$;

-- What a trigger was given: the words between zero bytes.
CREATE OR REPLACE FUNCTION {schema}.guard_words(arguments bytea) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    zero constant bytea := decode('00', 'hex');
    rest bytea := arguments;
    at int := position(zero IN rest);
    words text[] := '{}';
BEGIN
    WHILE at > 0 LOOP
        words := words || convert_from(substr(rest, 1, at - 1), getdatabaseencoding());
        rest := substr(rest, at + 1);
        at := position(zero IN rest);
    END LOOP;
    RETURN words;
END
$f$;

-- Without this a NULL would be told as an error in the text of a statement that nobody has written.
CREATE OR REPLACE FUNCTION {schema}.guard_named(relation regclass) RETURNS void
LANGUAGE plpgsql IMMUTABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    IF relation IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'no table is named: it is NULL';
    END IF;
END
$f$;

-- For lock_timeout, which takes up to 24 days.
CREATE OR REPLACE FUNCTION {schema}.guard_patience(wait interval) RETURNS text
LANGUAGE sql IMMUTABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT least(2147483647, greatest(1, ceil(extract(epoch FROM wait) * 1000)))::bigint::text || 'ms'
$f$;

-- Raises ZD001, and counts it.
CREATE OR REPLACE FUNCTION {schema}.refuse_stale(counter text, key text, fence bigint, newest bigint,
                                                 relation regclass) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    key := coalesce(key, (SELECT min(k) FROM jsonb_object_keys(
                              nullif(current_setting('dibs.fences', true), '')::jsonb) k));
    PERFORM {schema}.guard_note(counter, relation, key);
    RAISE EXCEPTION USING ERRCODE = 'ZD001',
        MESSAGE = format('fence %s of key "%s" is stale: fence %s has been here', fence, key, newest),
        DETAIL = jsonb_build_object('key', key, 'fence', fence, 'newest', newest, 'table', relation::text)::text,
        HINT = 'Somebody newer is at it: stop, and do not try again with this fence.';
END
$f$;

-- Raises ZD002, and counts it.
CREATE OR REPLACE FUNCTION {schema}.refuse_unfenced(counter text, relation regclass, key text, why text) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    PERFORM {schema}.guard_note(counter, relation, key);
    RAISE EXCEPTION USING ERRCODE = 'ZD002',
        MESSAGE = format('%s is protected, and %s', relation, why),
        DETAIL = jsonb_build_object('table', relation::text, 'key', key)::text,
        HINT = 'In the same transaction, before the write: SELECT ' || quote_ident({schema_text}) ||
               '.fence(key, fence).';
END
$f$;

-- Tells protected tables under which fence this transaction writes, until its end. Says nothing to others: a
-- holder that only read so far is not noticed by a later one. See claim().
-- Of one statement: UPDATE t SET … FROM dibs.fence('key', 42) WHERE …
CREATE OR REPLACE FUNCTION {schema}.fence(key text, fence bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    given text := current_setting('dibs.fences', true);
    fences jsonb;
    before bigint;
BEGIN
    IF key IS NULL OR key = '' OR fence IS NULL OR fence < 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'a fence needs a key, and is larger than 0';
    END IF;
    IF given > '' THEN
        fences := given;
        before := (fences ->> key)::bigint;
        IF before > fence THEN
            PERFORM {schema}.refuse_stale(({schema_text} || '.refused_claims')::text, key, fence, before,
                                          NULL::regclass);
        END IF;
        fences := fences || jsonb_build_object(key, fence);
    ELSE
        fences := jsonb_build_object(key, fence);
    END IF;
    PERFORM set_config('dibs.fences', fences::text, true);
    -- With fences of several keys, only tables that know the key of each row can tell which one counts.
    PERFORM set_config('dibs.fence',
                       CASE WHEN fences - key = '{}' THEN fence::text ELSE 'several' END, true);
    RETURN fence;
END
$f$;

-- fence(), and remembers it for the key: from the commit on, no older one is let in. To be called before
-- anything is read. Until the end of the transaction others wait in claim() for the same key; raises 55P03
-- (lock_not_available) when that takes longer than `wait`; NULL: as lock_timeout says.
CREATE OR REPLACE FUNCTION {schema}.claim(key text, fence bigint, wait interval DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    before text := current_setting('lock_timeout');
    newest bigint;
BEGIN
    PERFORM {schema}.fence(claim.key, claim.fence);
    IF octet_length(claim.key) > 1024 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'the key of a claim has up to 1024 bytes';
    END IF;
    IF wait IS NOT NULL THEN
        PERFORM set_config('lock_timeout', {schema}.guard_patience(wait), true);
    END IF;
    -- The row is written for the same fence too: one that was only locked would not count as changed to who waited
    -- for it in REPEATABLE READ, and goes on with a snapshot of before (40001 now).
    INSERT INTO {schema}.guard_key AS g(key, fence) VALUES (claim.key, claim.fence)
        ON CONFLICT ON CONSTRAINT guard_key_pkey
        DO UPDATE SET fence = excluded.fence, claimed_at = clock_timestamp() WHERE g.fence <= excluded.fence;
    IF NOT FOUND THEN
        SELECT g.fence INTO newest FROM {schema}.guard_key g WHERE g.key = claim.key;
        IF newest > claim.fence THEN
            PERFORM {schema}.refuse_stale(({schema_text} || '.refused_claims')::text, claim.key, claim.fence,
                                          newest, NULL::regclass);
        END IF;
    END IF;
    IF wait IS NOT NULL THEN
        PERFORM set_config('lock_timeout', before, true);
    END IF;
    RETURN claim.fence;
END
$f$;

-- The trigger of tables whose rows are all under one key. Arguments: counter, `refuse` or `allow`.
-- It runs for each row, so nothing is looked up here by name but what pg_catalog has.
CREATE OR REPLACE FUNCTION {schema}.check_fence() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER AS $f$
DECLARE
    given text := pg_catalog.current_setting('dibs.fence', true);
    mine bigint;
BEGIN
    -- The same holder once more, and nothing to change: 1 us of the 5 that this takes.
    IF OLD.fence::pg_catalog.text OPERATOR(pg_catalog.=) given AND NEW.fence OPERATOR(pg_catalog.=) OLD.fence THEN
        RETURN NEW;
    END IF;
    IF given OPERATOR(pg_catalog.>) '' THEN
        IF given OPERATOR(pg_catalog.=) 'several' THEN
            PERFORM {schema}.refuse_unfenced(TG_ARGV[0], TG_RELID::pg_catalog.regclass, NULL::pg_catalog.text,
                'fences of several keys were given: protect() it with a key, so that it knows which one counts'
                ::pg_catalog.text);
        END IF;
        mine := given;
        IF TG_OP OPERATOR(pg_catalog.=) 'INSERT' THEN
            NEW.fence := mine;
            RETURN NEW;
        END IF;
        -- Rows of before protect() have none, and take any.
        IF OLD.fence OPERATOR(pg_catalog.>) mine THEN
            PERFORM {schema}.refuse_stale(TG_ARGV[0], NULL::pg_catalog.text, mine, OLD.fence::pg_catalog.int8,
                                          TG_RELID::pg_catalog.regclass);
        END IF;
        IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
            RETURN OLD;
        END IF;
        NEW.fence := mine;
        RETURN NEW;
    END IF;
    IF TG_ARGV[1] OPERATOR(pg_catalog.=) 'refuse' THEN
        PERFORM {schema}.refuse_unfenced(TG_ARGV[0], TG_RELID::pg_catalog.regclass, NULL::pg_catalog.text,
                                         'no fence was given'::pg_catalog.text);
    END IF;
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
        RETURN OLD;
    END IF;
    -- Whoever gives none does not lower what is there.
    NEW.fence := CASE WHEN TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN OLD.fence END;
    RETURN NEW;
END
$f$;

-- The key of a row: `product:{id}` with the columns filled in.
CREATE OR REPLACE FUNCTION {schema}.key_of_row(pattern text, of_row jsonb) RETURNS text
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    made text := '';
    part text[];
BEGIN
    FOR part IN SELECT regexp_matches(pattern, '([^{]*)(?:[{]([^}]*)[}])?', 'g') LOOP
        made := made || part[1] || coalesce(of_row ->> part[2], '');
    END LOOP;
    RETURN made;
END
$f$;

-- Whether all columns of a pattern are there when a row is checked: those that are generated are not yet, and each
-- update would count as one that moves the row to another key.
CREATE OR REPLACE FUNCTION {schema}.guard_has_key(relation regclass, pattern text) RETURNS boolean
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT NOT EXISTS (SELECT FROM regexp_matches(pattern, '[{]([^}]*)[}]', 'g') m
                       WHERE NOT EXISTS (SELECT FROM pg_attribute a
                                         WHERE a.attrelid = relation AND a.attname = m[1] AND a.attnum > 0
                                           AND NOT a.attisdropped AND a.attgenerated = ''))
$f$;

-- The trigger of tables whose rows have keys of their own. Arguments: counter, `refuse` or `allow`, pattern.
CREATE OR REPLACE FUNCTION {schema}.check_fence_of_key() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    fences jsonb := coalesce(nullif(current_setting('dibs.fences', true), ''), '{}');
    row_key text;
    mine bigint;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        row_key := {schema}.key_of_row(TG_ARGV[2], to_jsonb(OLD));
        mine := (fences ->> row_key)::bigint;
        IF mine IS NULL AND TG_ARGV[1] = 'refuse' THEN
            PERFORM {schema}.refuse_unfenced(TG_ARGV[0], TG_RELID::regclass, row_key,
                                             format('no fence was given for key "%s"', row_key));
        END IF;
        IF OLD.fence > mine THEN
            PERFORM {schema}.refuse_stale(TG_ARGV[0], row_key, mine, OLD.fence::bigint, TG_RELID::regclass);
        END IF;
        IF TG_OP = 'DELETE' THEN
            RETURN OLD;
        END IF;
        NEW.fence := coalesce(mine, OLD.fence);
        IF row_key = {schema}.key_of_row(TG_ARGV[2], to_jsonb(NEW)) THEN
            RETURN NEW;
        END IF;
    END IF;
    -- A row that is new to its key.
    row_key := {schema}.key_of_row(TG_ARGV[2], to_jsonb(NEW));
    mine := (fences ->> row_key)::bigint;
    IF mine IS NULL AND TG_ARGV[1] = 'refuse' THEN
        PERFORM {schema}.refuse_unfenced(TG_ARGV[0], TG_RELID::regclass, row_key,
                                         format('no fence was given for key "%s"', row_key));
    END IF;
    NEW.fence := mine;
    RETURN NEW;
END
$f$;

-- TRUNCATE … RESTART IDENTITY takes what the table's columns own back to its start: so that is, before it comes to it,
-- what was counted so far. Whoever may not change a counter may not restart it either. Not before it is sure that
-- nothing is refused: what this transaction counts after it goes with its rollback.
CREATE OR REPLACE FUNCTION {schema}.guard_keep_count(relation regclass) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    counter regclass := {schema}.guard_counter(relation);
    counted bigint := {schema}.guard_counted(counter);
BEGIN
    IF counted > 0 AND coalesce(pg_partition_root(relation), relation) = relation THEN
        EXECUTE format('ALTER SEQUENCE %s START WITH %s', counter, counted + 1);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;
END
$f$;

-- TRUNCATE has no rows to look at, and nobody else at work on them: it asks for the newest fence of all.
CREATE OR REPLACE FUNCTION {schema}.check_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    fences jsonb := coalesce(nullif(current_setting('dibs.fences', true), ''), '{}');
    mine bigint;
    newest bigint;
BEGIN
    SELECT min(value::bigint) INTO mine FROM jsonb_each_text(fences);
    IF mine IS NULL THEN
        IF TG_ARGV[1] = 'refuse' THEN
            PERFORM {schema}.refuse_unfenced(TG_ARGV[0], TG_RELID::regclass, NULL::text,
                                             'no fence was given'::text);
        END IF;
        PERFORM {schema}.guard_keep_count(TG_RELID::regclass);
        RETURN NULL;
    END IF;
    -- A snapshot of before would not show what TRUNCATE takes away.
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('%s is protected: TRUNCATE of it needs READ COMMITTED', TG_RELID::regclass);
    END IF;
    -- TRUNCATE takes away what row-level security hides, too.
    IF row_security_active(TG_RELID) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('%s is protected, and row-level security hides rows of it from %I',
                             TG_RELID::regclass, current_user),
            HINT = 'TRUNCATE it as a role that sees all rows (BYPASSRLS), or DELETE.';
    END IF;
    EXECUTE format('SELECT max(fence) FROM %s', TG_RELID::regclass) INTO newest;
    IF newest > mine THEN
        PERFORM {schema}.refuse_stale(TG_ARGV[0], NULL::text, mine, newest, TG_RELID::regclass);
    END IF;
    PERFORM {schema}.guard_keep_count(TG_RELID::regclass);
    RETURN NULL;
END
$f$;

-- From now on each row of the table remembers the fence under which it was written last, and refuses writes with
-- an older one. The same fence may write again. `key`: NULL when all that is written in one transaction is under
-- one key; else the key of each row, as `product:{id}`. `unfenced`: what becomes of writes without a fence.
-- May be called again with other words. Needs: ownership of the table, CREATE on its schema.
-- Takes an exclusive lock on the table, but does not write its rows.
CREATE OR REPLACE FUNCTION {schema}.protect(relation regclass, key text DEFAULT NULL,
                                            unfenced text DEFAULT 'refuse') RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $f$
DECLARE
    kind "char";
    part boolean;
    column_now record;
    counter text;
    word text;
    schema_of_table name;
    table_owner name;
    arguments text;
    one regclass;
BEGIN
    PERFORM {schema}.guard_named(relation);
    SELECT c.relkind, c.relispartition INTO kind, part FROM pg_class c WHERE c.oid = relation;
    IF relation IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'which table is to be protected?';
    ELSIF kind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type', MESSAGE = format('%s is not a table', relation),
            HINT = 'Protect the tables below a view: writes through it are then checked.';
    ELSIF part THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type', MESSAGE = format('%s is a partition', relation),
            HINT = 'Protect the partitioned table.';
    END IF;
    SELECT p.relid::regclass INTO one FROM pg_partition_tree(relation) p JOIN pg_class c ON c.oid = p.relid
        WHERE c.relkind = 'f' LIMIT 1;
    IF one IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('%s, a partition of %s, is a foreign table', one, relation),
            HINT = 'Its rows are written at the other server, too: protect them there.';
    END IF;
    IF unfenced IS NULL OR unfenced NOT IN ('refuse', 'allow') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'unfenced is ''refuse'' or ''allow''';
    END IF;
    IF key = '' OR regexp_replace(key, '[{][^}]*[}]', '', 'g') LIKE '%{%' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('the key "%s" is no text with columns in braces, as product:{id}', key);
    END IF;
    FOR word IN SELECT m[1] FROM regexp_matches(coalesce(key, ''), '[{]([^}]*)[}]', 'g') m LOOP
        IF NOT EXISTS (SELECT FROM pg_attribute a
                       WHERE a.attrelid = relation AND a.attname = word AND a.attnum > 0 AND NOT a.attisdropped) THEN
            RAISE EXCEPTION USING ERRCODE = 'undefined_column',
                MESSAGE = format('%s has no column "%s" for the key "%s"', relation, word, key);
        ELSIF NOT {schema}.guard_has_key(relation, format('{%s}', word)) THEN
            RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
                MESSAGE = format('column "%s" of %s is generated, and has no value yet when a row is checked',
                                 word, relation),
                HINT = 'Name the columns that it is made of in the key.';
        END IF;
    END LOOP;

    SELECT a.atttypid AS type_now, a.attgenerated <> '' OR a.attidentity <> '' AS made, a.attnotnull AS full
        INTO column_now FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = 'fence' AND NOT a.attisdropped;
    IF NOT FOUND THEN
        EXECUTE format('ALTER TABLE %s ADD COLUMN fence bigint', relation);
    ELSIF column_now.type_now <> 'bigint'::regtype OR column_now.made THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('%s has a column "fence" already, and it is no plain bigint', relation);
    ELSIF column_now.full AND unfenced = 'allow' THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('the column "fence" of %s is NOT NULL, and rows without one are to be allowed', relation),
            HINT = format('ALTER TABLE %s ALTER COLUMN fence DROP NOT NULL', relation);
    END IF;

    SELECT ({schema}.guard_words(t.tgargs))[1] INTO counter FROM pg_trigger t
        WHERE t.tgrelid = relation AND t.tgname = 'zzz_dibs_fence';
    IF counter IS NULL OR {schema}.guard_counter_named(counter, relation) IS NULL THEN
        counter := 'owned';
        IF {schema}.guard_counter(relation) IS NULL THEN
            SELECT n.nspname, pg_get_userbyid(c.relowner) INTO schema_of_table, table_owner
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
            word := format('%I.%I', schema_of_table,
                           'dibs_refused_' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 16));
            EXECUTE format('CREATE SEQUENCE %s', word);
            EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO PUBLIC', word);
            EXECUTE format('ALTER SEQUENCE %s OWNER TO %I', word, table_owner);
            EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.fence', word, relation);
        END IF;
    END IF;
    arguments := format('%L, %L', counter, unfenced);
    -- Triggers go by the order of their names: what others change, this one has the last word on.
    EXECUTE format('DROP TRIGGER IF EXISTS zzz_dibs_fence ON %s', relation);
    IF key IS NULL THEN
        EXECUTE format('CREATE TRIGGER zzz_dibs_fence BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW '
                       'EXECUTE FUNCTION {schema}.check_fence(%s)', relation, arguments);
    ELSE
        EXECUTE format('CREATE TRIGGER zzz_dibs_fence BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW '
                       'EXECUTE FUNCTION {schema}.check_fence_of_key(%s, %L)', relation, arguments, key);
    END IF;
    FOR one IN SELECT relation UNION SELECT p.relid FROM pg_partition_tree(relation) p LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS zzz_dibs_truncate ON %s', one);
        EXECUTE format('CREATE TRIGGER zzz_dibs_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT '
                       'EXECUTE FUNCTION {schema}.check_truncate(%s)', one, arguments);
    END LOOP;
END
$f$;

-- Takes protect() back. The column stays, with what it knows, unless `drop_column`.
CREATE OR REPLACE FUNCTION {schema}.unprotect(relation regclass, drop_column boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $f$
DECLARE
    counter text;
    counted regclass;
    one regclass;
BEGIN
    PERFORM {schema}.guard_named(relation);
    SELECT ({schema}.guard_words(t.tgargs))[1] INTO counter FROM pg_trigger t
        WHERE t.tgrelid = relation AND t.tgname = 'zzz_dibs_fence';
    IF counter IS NULL AND drop_column THEN
        -- Its column may be anybody's.
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('%s is not protected', relation),
            HINT = format('If the column is no longer needed: ALTER TABLE %s DROP COLUMN fence.', relation);
    END IF;
    counted := {schema}.guard_counter_named(counter, relation);
    EXECUTE format('DROP TRIGGER IF EXISTS zzz_dibs_fence ON %s', relation);
    FOR one IN SELECT relation UNION SELECT p.relid FROM pg_partition_tree(relation) p LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS zzz_dibs_truncate ON %s', one);
    END LOOP;
    IF counted IS NOT NULL THEN
        EXECUTE format('DROP SEQUENCE %s', counted);
    END IF;
    IF drop_column THEN
        EXECUTE format('ALTER TABLE %s DROP COLUMN IF EXISTS fence', relation);
    END IF;
END
$f$;

-- Where something that is protected, or was while it was a partition, is open all the same, and why. No row: nowhere.
CREATE OR REPLACE FUNCTION {schema}.guard_gaps() RETURNS TABLE(relation text, place text, gap text)
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT t.tgrelid::regclass::text, m.relid::regclass::text,
           CASE WHEN f.oid IS NULL OR f.tgenabled NOT IN ('O', 'A') THEN 'writes'
                ELSE 'TRUNCATE of it by name' END
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
    -- A write by the name of a table reaches its children by old-style inheritance, and their triggers alone.
    CROSS JOIN LATERAL (WITH RECURSIVE below AS (
                            SELECT t.tgrelid::oid AS relid
                            UNION SELECT i.inhrelid FROM pg_inherits i JOIN below b ON b.relid = i.inhparent)
                        SELECT b.relid FROM below b) m
    LEFT JOIN pg_trigger f ON f.tgrelid = m.relid AND f.tgname = 'zzz_dibs_fence'
    LEFT JOIN pg_trigger c ON c.tgrelid = m.relid AND c.tgname = 'zzz_dibs_truncate'
    WHERE t.tgname = 'zzz_dibs_fence' AND t.tgparentid = 0 AND p.pronamespace = {schema_text}::regnamespace
      AND (f.oid IS NULL OR f.tgenabled NOT IN ('O', 'A') OR c.oid IS NULL OR c.tgenabled NOT IN ('O', 'A'))
    UNION ALL
    -- A column of the key has gone, or has another name, or is generated.
    SELECT t.tgrelid::regclass::text, t.tgrelid::regclass::text, 'writes'
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE t.tgname = 'zzz_dibs_fence' AND t.tgparentid = 0 AND p.pronamespace = {schema_text}::regnamespace
      AND NOT {schema}.guard_has_key(t.tgrelid::regclass, coalesce(({schema}.guard_words(t.tgargs))[3], '')::text)
    UNION ALL
    -- DETACH takes the trigger that came from the parent, and leaves the other.
    SELECT c.tgrelid::regclass::text, c.tgrelid::regclass::text, 'writes'
    FROM pg_trigger c JOIN pg_proc p ON p.oid = c.tgfoid
    WHERE c.tgname = 'zzz_dibs_truncate' AND p.pronamespace = {schema_text}::regnamespace
      AND NOT EXISTS (SELECT FROM pg_trigger f WHERE f.tgrelid IN (c.tgrelid, pg_partition_root(c.tgrelid))
                                                 AND f.tgname = 'zzz_dibs_fence')
    ORDER BY 1, 2
$f$;

-- What is protected, and how many writes were refused; `enabled`: all writes are checked, in all partitions. The count
-- is exact while the server runs; after a crash it may be too large by up to 32 where something was refused before.
CREATE OR REPLACE FUNCTION {schema}.guard_report()
RETURNS TABLE(relation text, key text, unfenced text, refused bigint, enabled boolean)
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    one record;
    words text[];
BEGIN
    FOR one IN SELECT t.tgrelid, t.tgargs FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
               WHERE t.tgname = 'zzz_dibs_fence' AND t.tgparentid = 0
                 AND p.pronamespace = {schema_text}::regnamespace
               ORDER BY t.tgrelid::regclass::text LOOP
        words := {schema}.guard_words(one.tgargs);
        relation := one.tgrelid::regclass::text;
        unfenced := words[2];
        key := words[3];
        refused := {schema}.guard_counted({schema}.guard_counter_named(words[1], one.tgrelid::regclass));
        enabled := NOT EXISTS (SELECT FROM {schema}.guard_gaps() g
                               WHERE g.relation = guard_report.relation AND g.gap = 'writes');
        RETURN NEXT;
    END LOOP;
    relation := NULL;
    key := 'dibs.claim()';
    unfenced := NULL;
    refused := {schema}.guard_counted(({schema_text} || '.refused_claims')::regclass);
    enabled := true;
    RETURN NEXT;
END
$f$;
