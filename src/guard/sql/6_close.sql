
-- ---------------------------------------------------------------------------------------------------- rights
-- Everybody may name what is in this schema; tables belong to its owner alone. What writes into them, functions that
-- run with the owner's rights, is for whom allow() says.

GRANT USAGE ON SCHEMA {schema} TO PUBLIC;
REVOKE ALL ON {schema}.guard_version, {schema}.guard_key, {schema}.guard_request FROM PUBLIC;
GRANT SELECT ON {schema}.guard_version TO PUBLIC;
GRANT USAGE, SELECT ON SEQUENCE {schema}.refused_claims TO PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.claim(text, bigint, interval), {schema}.begin_request(text, text, interval),
    {schema}.finish_request(text, text, interval), {schema}.purge_requests(int) FROM PUBLIC;

-- Lets a role claim keys and keep requests. `protects` is of before version 2, and changes nothing: to protect() a
-- table takes its ownership, and CREATE on the table's schema.
CREATE OR REPLACE FUNCTION {schema}.allow(role regrole, protects boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    -- GRANT by somebody who may not is a warning.
    IF NOT pg_has_role((SELECT n.nspowner FROM pg_namespace n WHERE n.oid = {schema_text}::regnamespace),
                       'USAGE') THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('only the owner of the schema %s may allow', {schema_text}::regnamespace);
    END IF;
    IF role IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'no role is named: it is NULL';
    END IF;
    EXECUTE format('GRANT EXECUTE ON FUNCTION {schema}.claim(text, bigint, interval), '
                   '{schema}.begin_request(text, text, interval), '
                   '{schema}.finish_request(text, text, interval), {schema}.purge_requests(int) TO %s', role);
END
$f$;

-- All belongs to the schema's owner, who could put something else in its place anyhow: functions that run with
-- their owner's rights must not have more than that one has.
DO $do$
DECLARE
    owner text;
    one text;
BEGIN
    SELECT n.nspowner::regrole::text INTO owner FROM pg_catalog.pg_namespace n WHERE n.nspname = {schema_text};
    FOR one IN
        SELECT pg_catalog.format('ALTER FUNCTION %s OWNER TO %s', p.oid::regprocedure, owner)
            FROM pg_catalog.pg_proc p
            WHERE p.pronamespace = {schema_text}::regnamespace AND p.proname = ANY ({functions})
              AND p.proowner <> owner::regrole
        UNION ALL
        SELECT pg_catalog.format('ALTER %s %s OWNER TO %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                                 c.oid::regclass, owner)
            FROM pg_catalog.pg_class c
            WHERE c.relnamespace = {schema_text}::regnamespace AND c.relname = ANY ({relations})
              AND c.relkind IN ('r', 'S') AND c.relowner <> owner::regrole LOOP
        EXECUTE one;
    END LOOP;
    -- Also where ALTER DEFAULT PRIVILEGES would have it otherwise: triggers of everybody's tables call them.
    FOR one IN
        SELECT pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', p.oid::regprocedure)
            FROM pg_catalog.pg_proc p
            WHERE p.pronamespace = {schema_text}::regnamespace AND p.proname = ANY ({functions})
              AND NOT p.prosecdef AND NOT pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE') LOOP
        EXECUTE one;
    END LOOP;
END
$do$;

COMMIT;
