-- People whom an issuer elsewhere knows, and forges that say that something was pushed.
--
-- Who comes with a JWT has a row in loki.tokens with no secret of its own, so that the audit and
-- revocation know the person. What one JWT allows is kept until it expires, by the hash of the JWT.

CREATE TABLE loki.sessions (
  hash     bytea PRIMARY KEY,               -- SHA-256 of the JWT, which was validated
  token    int NOT NULL REFERENCES loki.tokens ON DELETE CASCADE,
  scopes   text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'push', 'admin']),
  expires  timestamptz NOT NULL
);

CREATE TABLE loki.session_grants (
  hash       bytea NOT NULL REFERENCES loki.sessions ON DELETE CASCADE,
  scope      text NOT NULL,
  repository int NOT NULL REFERENCES loki.repositories ON DELETE CASCADE,
  PRIMARY KEY (hash, scope, repository)
);

ALTER TABLE loki.audit ALTER COLUMN token DROP NOT NULL;
ALTER TABLE loki.audit ADD COLUMN who text NOT NULL DEFAULT ''; -- a forge, which has no token
ALTER TABLE loki.audit ADD CHECK (token IS NOT NULL OR who <> '');

CREATE FUNCTION loki.secret_hash() RETURNS bytea
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT sha256(convert_to(coalesce(current_setting('app.token', true), ''), 'UTF8'))
$$;

CREATE OR REPLACE FUNCTION loki.token() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM loki.tokens
  WHERE hash = loki.secret_hash() AND revoked IS NULL AND (expires IS NULL OR expires > now())
  UNION ALL
  SELECT t.id FROM loki.sessions AS s JOIN loki.tokens AS t ON t.id = s.token
  WHERE s.hash = loki.secret_hash() AND s.expires > now() AND t.revoked IS NULL
$$;

CREATE OR REPLACE FUNCTION loki.reach(scope text) RETURNS int[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(repository), '{}') FROM (
    SELECT g.repository FROM loki.tokens AS t JOIN loki.grants AS g ON g.token = t.id
    WHERE t.id = loki.token() AND t.hash = loki.secret_hash() AND reach.scope = ANY (t.scopes)
    UNION ALL
    SELECT g.repository FROM loki.session_grants AS g
    WHERE g.hash = loki.secret_hash() AND g.scope = reach.scope AND loki.token() IS NOT NULL
  ) AS reached
$$;

CREATE OR REPLACE FUNCTION loki.caller() RETURNS TABLE (id int, name text, scopes text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, t.name, coalesce(s.scopes, t.scopes) FROM loki.tokens AS t
  LEFT JOIN loki.sessions AS s ON s.token = t.id AND s.hash = loki.secret_hash()
  WHERE t.id = loki.token()
$$;
REVOKE ALL ON FUNCTION loki.secret_hash FROM PUBLIC;
GRANT EXECUTE ON FUNCTION loki.secret_hash TO loki_memory_requests;

DO $$ DECLARE name text; BEGIN
  FOREACH name IN ARRAY ARRAY['sessions', 'session_grants'] LOOP
    EXECUTE format('ALTER TABLE loki.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE loki.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY owner ON loki.%I TO CURRENT_USER USING (true)', name);
  END LOOP;
END $$;
