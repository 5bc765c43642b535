-- history.db, version 1: what the controller saw. Written with synchronous =
-- NORMAL: a power cut may take the last minutes, never the file. Times are unix
-- milliseconds. `sum` is the CRC-32C of the other columns in their order here.

-- Names of cells. Ids are given out by the one writer, which holds all names in
-- memory; an index would only be written, never read.
CREATE TABLE cells (
  id        INTEGER PRIMARY KEY,
  bucket    TEXT    NOT NULL, -- full name
  instance  TEXT    NOT NULL, -- region or zone; '' for a global bucket
  caller    TEXT    NOT NULL, -- '' unless the bucket is per caller
  last_hour INTEGER NOT NULL, -- newest row in hours, unix ms
  sum       INTEGER NOT NULL
) STRICT;

CREATE TABLE zone_names (
  id   INTEGER PRIMARY KEY,
  name TEXT    NOT NULL,
  sum  INTEGER NOT NULL
) STRICT;

-- One row per hour, cell and zone that had requests. The hour comes first in
-- the key, so that a minute writes, and a prune deletes, pages that lie
-- together. No foreign keys: deleting a name would then search all hours;
-- cells.last_hour says when a name has no row left.
CREATE TABLE hours (
  hour       INTEGER NOT NULL, -- start, unix ms
  cell       INTEGER NOT NULL, -- cells.id
  zone       INTEGER NOT NULL, -- zone_names.id
  minutes    BLOB    NOT NULL, -- 60 minutes packed, see hour.go
  max_minute INTEGER NOT NULL, -- highest minute, offered requests
  max_second INTEGER NOT NULL, -- highest second, offered requests
  sum        INTEGER NOT NULL,
  PRIMARY KEY (hour, cell, zone)
) STRICT, WITHOUT ROWID;

-- Zones that sent reports; a controller that starts waits for them.
CREATE TABLE zones (
  name   TEXT    PRIMARY KEY,
  region TEXT    NOT NULL,
  seen   INTEGER NOT NULL, -- last time, unix ms
  sum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
