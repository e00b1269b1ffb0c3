-- What the server keeps. Rows of a repository come from its git history, or were pushed; tokens,
-- grants and the audit are the only tables that no fetch makes again.
--
-- The owner of the database migrates, fetches and makes tokens. Requests run as the role
-- loki_memory_requests, which neither owns anything nor bypasses row-level security. The secret of
-- the request's token stands in the setting app.token for one transaction: who forges the setting
-- without knowing a secret sees no row.

CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA IF NOT EXISTS loki;

DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'loki_memory_requests') THEN
    CREATE ROLE loki_memory_requests NOLOGIN NOBYPASSRLS;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this cluster was faster
END $$;
GRANT loki_memory_requests TO CURRENT_USER;
GRANT USAGE ON SCHEMA loki TO loki_memory_requests;

CREATE TABLE loki.repositories (
  id       int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name     text NOT NULL UNIQUE,
  epoch    uuid NOT NULL DEFAULT gen_random_uuid(), -- a cursor of another life of this row is no cursor
  version  bigint NOT NULL DEFAULT 0,               -- of its records; counted under the lock of this row
  commit   text NOT NULL DEFAULT '',                -- that the records from git come from
  settings bytea NOT NULL DEFAULT '',               -- config.toml of that commit
  fetched  timestamptz,                             -- when the source was last reached
  problem  text NOT NULL DEFAULT ''                 -- why it could not be
);

CREATE TABLE loki.tokens (
  id       int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name     text NOT NULL UNIQUE,            -- whose it is
  hash     bytea NOT NULL UNIQUE,           -- SHA-256 of the secret, which has 256 bits of its own
  scopes   text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'push', 'admin']),
  created  timestamptz NOT NULL DEFAULT now(),
  expires  timestamptz,
  revoked  timestamptz
);

CREATE TABLE loki.grants (
  token      int NOT NULL REFERENCES loki.tokens ON DELETE CASCADE,
  repository int NOT NULL REFERENCES loki.repositories ON DELETE CASCADE,
  PRIMARY KEY (token, repository)
);

-- One row per record file. Paths below local/ were pushed, all others are from git.
CREATE TABLE loki.records (
  repository int NOT NULL REFERENCES loki.repositories ON DELETE CASCADE,
  path       text COLLATE "C" NOT NULL,     -- relative to the memory folder
  version    bigint NOT NULL,               -- of the repository, when this row last changed
  id         text NOT NULL,                 -- of the memory; empty for a file that cannot be read
  kind       text NOT NULL,
  title      text NOT NULL,
  status     text NOT NULL,
  value      text NOT NULL,                 -- the id that a tombstone of its value has; empty if it has no value
  etag       text NOT NULL,                 -- hash of the content
  content    bytea NOT NULL,                -- the file, byte for byte; empty once it is gone
  pushed_by  int REFERENCES loki.tokens,    -- null for what git holds
  gone       boolean NOT NULL DEFAULT false, -- kept for clients that have it
  PRIMARY KEY (repository, path),
  CHECK ((pushed_by IS NOT NULL) = (path LIKE 'local/%'))
);
CREATE INDEX records_rejected ON loki.records (repository, value) WHERE kind = 'tombstone' AND NOT gone;
CREATE INDEX records_version ON loki.records (repository, version);

-- What is searched across repositories: passages with their words and their meaning.
CREATE TABLE loki.passages (
  repository int NOT NULL,
  path       text COLLATE "C" NOT NULL,
  number     int NOT NULL,
  words      tsvector NOT NULL,
  meaning    vector(256) NOT NULL,
  PRIMARY KEY (repository, path, number),
  FOREIGN KEY (repository, path) REFERENCES loki.records ON DELETE CASCADE
);

CREATE TABLE loki.audit (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at         timestamptz NOT NULL DEFAULT now(),
  token      int NOT NULL REFERENCES loki.tokens,
  repository int REFERENCES loki.repositories ON DELETE CASCADE,
  act        text NOT NULL,                 -- the tool or the endpoint
  ids        text[] NOT NULL                -- the memories that were shown, or taken in
);

-- The token of this transaction: null where the secret is wrong, expired or revoked.
CREATE FUNCTION loki.token() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM loki.tokens
  WHERE hash = sha256(convert_to(coalesce(current_setting('app.token', true), ''), 'UTF8'))
    AND revoked IS NULL AND (expires IS NULL OR expires > now())
$$;

-- The repositories in which that token may do what a scope allows.
CREATE FUNCTION loki.reach(scope text) RETURNS int[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(g.repository), '{}') FROM loki.tokens AS t JOIN loki.grants AS g ON g.token = t.id
  WHERE t.id = loki.token() AND scope = ANY (t.scopes)
$$;

-- Who asks, and what for; one call per request.
CREATE FUNCTION loki.caller() RETURNS TABLE (id int, name text, scopes text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id, name, scopes FROM loki.tokens WHERE id = loki.token()
$$;

-- Lock a repository and count its next version. Writers wait here for each other, so that versions
-- become visible in their order: a reader that saw one has seen all before it.
CREATE FUNCTION loki.next_version(wanted int) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE loki.repositories SET version = version + 1
  WHERE id = wanted AND id = ANY (loki.reach('push')) RETURNING version
$$;
REVOKE ALL ON FUNCTION loki.token, loki.reach, loki.caller, loki.next_version FROM PUBLIC;
GRANT EXECUTE ON FUNCTION loki.token, loki.reach, loki.caller, loki.next_version TO loki_memory_requests;

GRANT SELECT ON loki.repositories, loki.records, loki.passages TO loki_memory_requests;
GRANT INSERT, UPDATE ON loki.records TO loki_memory_requests;
GRANT INSERT, DELETE ON loki.passages TO loki_memory_requests;
GRANT INSERT ON loki.audit TO loki_memory_requests;

DO $$ DECLARE name text; BEGIN
  FOREACH name IN ARRAY ARRAY['repositories', 'tokens', 'grants', 'records', 'passages', 'audit'] LOOP
    EXECUTE format('ALTER TABLE loki.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE loki.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY owner ON loki.%I TO CURRENT_USER USING (true)', name);
  END LOOP;
END $$;

-- The subquery is evaluated once per statement, and its array serves an index.
CREATE POLICY reading ON loki.repositories FOR SELECT TO loki_memory_requests
  USING (id = ANY ((SELECT loki.reach('read') || loki.reach('push'))::int[]));
CREATE POLICY reading ON loki.records FOR SELECT TO loki_memory_requests
  USING (repository = ANY ((SELECT loki.reach('read'))::int[])
    OR pushed_by IS NOT NULL AND repository = ANY ((SELECT loki.reach('push'))::int[]));
CREATE POLICY pushing ON loki.records FOR INSERT TO loki_memory_requests
  WITH CHECK (pushed_by = (SELECT loki.token()) AND repository = ANY ((SELECT loki.reach('push'))::int[]));
CREATE POLICY merging ON loki.records FOR UPDATE TO loki_memory_requests
  USING (pushed_by IS NOT NULL AND repository = ANY ((SELECT loki.reach('push'))::int[]))
  WITH CHECK (pushed_by = (SELECT loki.token()) AND repository = ANY ((SELECT loki.reach('push'))::int[]));
CREATE POLICY reading ON loki.passages FOR SELECT TO loki_memory_requests
  USING (repository = ANY ((SELECT loki.reach('read'))::int[])
    OR path LIKE 'local/%' AND repository = ANY ((SELECT loki.reach('push'))::int[]));
CREATE POLICY pushing ON loki.passages FOR INSERT TO loki_memory_requests
  WITH CHECK (path LIKE 'local/%' AND repository = ANY ((SELECT loki.reach('push'))::int[]));
CREATE POLICY replacing ON loki.passages FOR DELETE TO loki_memory_requests
  USING (path LIKE 'local/%' AND repository = ANY ((SELECT loki.reach('push'))::int[]));
CREATE POLICY noting ON loki.audit FOR INSERT TO loki_memory_requests
  WITH CHECK (token = (SELECT loki.token()));
