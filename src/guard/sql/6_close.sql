
-- ---------------------------------------------------------------------------------------------------- rights
-- Everybody may name what is in this schema; tables belong to its owner alone. What writes into them, functions that
-- run with the owner's rights, is for whom allow() says.

GRANT USAGE ON SCHEMA {schema} TO PUBLIC;
REVOKE ALL ON {schema}.guard_version, {schema}.guard_key, {schema}.guard_request FROM PUBLIC;
GRANT SELECT ON {schema}.guard_version TO PUBLIC;
GRANT USAGE, SELECT ON SEQUENCE {schema}.refused_claims TO PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.claim(text, bigint, interval), {schema}.begin_request(text, text, interval),
    {schema}.finish_request(text, text, interval), {schema}.purge_requests(int) FROM PUBLIC;

-- Lets a role claim keys and keep requests; with `protects` also protect() tables that it owns.
CREATE OR REPLACE FUNCTION {schema}.allow(role regrole, protects boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    EXECUTE format('GRANT EXECUTE ON FUNCTION {schema}.claim(text, bigint, interval), '
                   '{schema}.begin_request(text, text, interval), '
                   '{schema}.finish_request(text, text, interval), {schema}.purge_requests(int) TO %s', role);
    IF protects THEN
        EXECUTE format('GRANT CREATE ON SCHEMA {schema} TO %s', role);
    END IF;
END
$f$;

COMMIT;
