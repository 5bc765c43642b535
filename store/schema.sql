-- grl.db, version 1: what the controller must not forget. Written with
-- synchronous = FULL. Times are unix milliseconds. `sum` is the CRC-32C of the
-- other columns in their order here: quick_check does not notice a flipped bit
-- inside a value.

-- The normalised YAML of one service, once for all revisions that hold it.
CREATE TABLE documents (
  hash BLOB NOT NULL PRIMARY KEY CHECK (length(hash) = 32), -- SHA-256 of body
  body BLOB NOT NULL
) STRICT;

CREATE TABLE revisions (
  number      INTEGER PRIMARY KEY CHECK (number > 0), -- without gaps
  manifest    BLOB    NOT NULL CHECK (length(manifest) = 32), -- SHA-256 of its services and hashes
  author      TEXT    NOT NULL,
  reason      TEXT    NOT NULL,
  source      TEXT    NOT NULL, -- what it came from, such as 'limits directory'
  source_hash TEXT    NOT NULL, -- of the source's content; '' if it has none
  at          INTEGER NOT NULL, -- unix ms
  sum         INTEGER NOT NULL
) STRICT;

-- The services of each revision. Guarded by revisions.manifest.
CREATE TABLE manifests (
  revision INTEGER NOT NULL REFERENCES revisions (number),
  service  TEXT    NOT NULL,
  hash     BLOB    NOT NULL REFERENCES documents (hash),
  PRIMARY KEY (revision, service)
) STRICT, WITHOUT ROWID;

-- The active revision: one row, none before the first.
CREATE TABLE head (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  revision INTEGER NOT NULL REFERENCES revisions (number),
  sum      INTEGER NOT NULL
) STRICT;

-- What was last loaded from each source, changed or not.
CREATE TABLE sources (
  source   TEXT    PRIMARY KEY,
  hash     TEXT    NOT NULL, -- of the source's content
  revision INTEGER NOT NULL, -- head after the load; 0: nothing loaded into an empty store
  at       INTEGER NOT NULL, -- unix ms
  sum      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
  name  TEXT    PRIMARY KEY, -- 'epoch'
  value INTEGER NOT NULL,
  sum   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
