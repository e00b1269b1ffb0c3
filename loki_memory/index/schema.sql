-- The index: what the memory files say, arranged for questions.
--
-- Everything here is derived from files. Delete the database and the next command builds it again;
-- nothing is lost. Another schema version means rebuild, never migrate.

-- One row per memory that can be read.
CREATE TABLE memories (
  row        INTEGER PRIMARY KEY,           -- joins passages and marks
  id         TEXT NOT NULL UNIQUE,          -- as in the file, or derived from the record's key
  kind       TEXT NOT NULL,                 -- episode, pattern, anti-pattern, fact, link, …
  path       TEXT NOT NULL,                 -- the file it stands in, relative to memory/ (a view: not yet taken over)
  etag       TEXT NOT NULL,                 -- hash of the file's bytes
  status     TEXT NOT NULL,                 -- candidate, active, disputed, superseded, rejected, retired; handoffs: open, accepted, done, expired
  scope      TEXT NOT NULL,                 -- project, local, user, session
  origin     TEXT NOT NULL,                 -- owner, agent, import, external; empty if the file does not say
  at         TEXT NOT NULL,                 -- the moment it speaks of, UTC; empty if unknown
  until      TEXT NOT NULL,                 -- when it ceased to hold; empty if it holds
  agent      TEXT NOT NULL,                 -- who did it, said it or owns it
  session    TEXT NOT NULL,                 -- the sequence that it is a part of
  category   TEXT NOT NULL,
  outcome    TEXT NOT NULL,                 -- of an episode
  confidence REAL,
  importance REAL,
  pinned     INTEGER NOT NULL,
  parent     TEXT NOT NULL,                 -- the topic above it
  tombstone  TEXT NOT NULL,                 -- the id that a tombstone of its value has: where one exists, this memory is rejected
  title      TEXT NOT NULL,                 -- one line
  size       INTEGER NOT NULL,              -- of the body, in bytes
  body       TEXT NOT NULL                  -- the record as JSON, secrets redacted
) STRICT;
CREATE INDEX memories_kind ON memories (kind, at);
CREATE INDEX memories_path ON memories (path);
CREATE INDEX memories_value ON memories (tombstone) WHERE tombstone <> '';
CREATE INDEX memories_session ON memories (session, at) WHERE session <> '';
CREATE INDEX memories_parent ON memories (parent) WHERE parent <> '';

-- What is searched: a memory's text in passages of some 80 words (most have one).
CREATE TABLE passages (
  row    INTEGER PRIMARY KEY,               -- joins the full-text table
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  key    INTEGER NOT NULL,                  -- 63 bits of the text's hash: the key of its vector; 0 for detail,
                                            -- which is found by its words only (an episode's action log)
  text   TEXT NOT NULL
) STRICT;
CREATE INDEX passages_memory ON passages (memory);

-- The vectors of passages, by the text's hash and the model: no text is embedded twice. They depend on
-- nothing else, so a rebuild keeps this table; it goes with the file.
CREATE TABLE IF NOT EXISTS vectors (
  row    INTEGER PRIMARY KEY,               -- the order in which the mapped cache holds them
  model  TEXT NOT NULL,                     -- name and hash of the model
  key    INTEGER NOT NULL,                  -- of the passages with this text
  length INTEGER NOT NULL,                  -- tokens of the text, repeated ones too
  tokens BLOB NOT NULL,                     -- its distinct token ids in rising order, 4 bytes each
  vector BLOB NOT NULL,                     -- 4 bytes: the length of a step, then a signed byte per dimension; length 1, or zeros for a text without tokens
  UNIQUE (model, key)
) STRICT;

-- Full text of the passages; FTS5 keeps only its own index and reads the words there. It is brought
-- up to date at the end of a change: a trigger would make it write to disk for every passage.
CREATE VIRTUAL TABLE words USING fts5 (
  text,
  content = 'passages', content_rowid = 'row',
  tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'" -- vowel signs are letters
);

-- What memories share besides words: "error:…" the signature of an error, "errors:…" the class of
-- it, "rule:…" the rule of a linter or a compiler that it names, "symbol:…" a name of code. Files are edges: they are stated, these are read out of the text.
CREATE TABLE marks (
  mark   TEXT NOT NULL,
  memory INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  PRIMARY KEY (mark, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX marks_memory ON marks (memory);

-- Every word as it is written, with the number of passages that use it: for guessing at words that
-- nobody wrote, and for parts of words in scripts that are written without spaces.
CREATE TABLE vocabulary (
  row  INTEGER PRIMARY KEY,
  word TEXT NOT NULL UNIQUE,                -- lower case, as unicode61 takes words from passages (not detail); 2 to 64 characters
  uses INTEGER NOT NULL                     -- a word that nobody uses has no row
) STRICT;
CREATE VIRTUAL TABLE parts USING fts5 (
  word, content = 'vocabulary', content_rowid = 'row', tokenize = 'trigram',
  columnsize = 0                            -- words are short: their lengths are counted when they are asked for
);
CREATE TRIGGER word_added AFTER INSERT ON vocabulary BEGIN
  INSERT INTO parts (rowid, word) VALUES (new.row, new.word);
END;
CREATE TRIGGER word_removed AFTER DELETE ON vocabulary BEGIN
  INSERT INTO parts (parts, rowid, word) VALUES ('delete', old.row, old.word);
END;

-- The graph. A target may be a memory, or a file of the project ("file:src/app.ts"); it need not exist.
CREATE TABLE edges (
  source   TEXT NOT NULL,                   -- a memory's id
  target   TEXT NOT NULL,
  relation TEXT NOT NULL,
  weight   REAL NOT NULL,                   -- 0 to 1
  stated   TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE, -- who states it: the source itself, or a link record
  PRIMARY KEY (source, relation, target, stated)
) STRICT;
CREATE INDEX edges_target ON edges (target, relation);
CREATE INDEX edges_stated ON edges (stated);

-- One row per file that was read: how we know next time that it did not change.
CREATE TABLE files (
  path TEXT PRIMARY KEY,
  hash TEXT NOT NULL,                       -- of the bytes; empty if the file could not be read
  claims TEXT NOT NULL,                     -- the id that the file gives its record, in small letters; empty if it has no readable record
  held   INTEGER NOT NULL                   -- 0 if another file claims the same id and comes first
) STRICT, WITHOUT ROWID;
CREATE INDEX files_claims ON files (claims) WHERE claims <> '';
CREATE INDEX files_losers ON files (path) WHERE held = 0;

-- The stamps of all files in a folder in one value: comparing 100,000 files must not cost 100,000 rows.
CREATE TABLE folders (
  path   TEXT PRIMARY KEY,
  mtime  INTEGER NOT NULL,                  -- of the folder itself, in ns; 0 if it may have changed within one tick
  stamps BLOB NOT NULL                      -- marshal of {name: (mtime_ns, ctime_ns, size)}
) STRICT, WITHOUT ROWID;

-- What could not be read or needs a person.
CREATE TABLE problems (
  path   TEXT NOT NULL,
  line   INTEGER NOT NULL,                  -- 0 if unknown
  field  TEXT NOT NULL,
  reason TEXT NOT NULL,
  advice TEXT NOT NULL
) STRICT;
CREATE INDEX problems_path ON problems (path);

-- One value per kind that changes whenever a record of that kind does: XOR of the hashes of paths and etags.
CREATE TABLE fingerprints (
  kind  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The number of rows of each table and the XOR of the hashes of its rows: a row that is missing or
-- damaged shows (index/database.py).
CREATE TABLE digests (
  name  TEXT PRIMARY KEY,                   -- of the table
  rows  INTEGER NOT NULL,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The files as the last run of consolidation left them: without them, the next run reads and looks at everything.
CREATE TABLE features (
  path    TEXT PRIMARY KEY,                 -- the file of a record, archived ones too
  etag    TEXT NOT NULL,                    -- hash of its bytes
  version TEXT NOT NULL,                    -- of the code that ran, and of its settings
  body    TEXT NOT NULL                     -- of an episode: the fields of EpisodeFeatures, a JSON array; else empty
) STRICT;

-- Small facts about the index itself: when it last looked at every file, and where it was made.
CREATE TABLE notes (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A rejected value stays rejected wherever it comes from, whatever its record says.
CREATE VIEW judged AS
  SELECT
    m.row, m.id, m.kind, m.path, m.etag, m.scope, m.origin, m.at, m.agent, m.session, m.category, m.outcome,
    m.confidence, m.importance, m.pinned, m.parent, m.title, m.size, m.body,
    CASE WHEN m.tombstone <> '' AND m.kind <> 'tombstone' AND EXISTS (
      SELECT 1 FROM memories AS t WHERE t.kind = 'tombstone' AND t.tombstone = m.tombstone
    ) THEN 'rejected' ELSE m.status END AS status
  FROM memories AS m;

-- What is shown unless somebody asks for more.
CREATE VIEW live AS
  SELECT * FROM judged WHERE status NOT IN ('superseded', 'rejected', 'retired');
