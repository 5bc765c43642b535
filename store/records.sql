-- grl.db, version 2: records under keys in place of the tables of version 1.
-- Written with synchronous = FULL. `sum` is the CRC-32C of the other columns in
-- their order here: quick_check does not notice a flipped bit inside a value.

-- Without rowid there is no index beside the table that could differ from it.
CREATE TABLE records (
  key     TEXT    NOT NULL PRIMARY KEY,
  value   BLOB    NOT NULL,
  version INTEGER NOT NULL CHECK (version > 0), -- of the commit that wrote it
  sum     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What all records are together: one row, none before the first commit.
CREATE TABLE tally (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  version INTEGER NOT NULL, -- of the last commit
  records INTEGER NOT NULL, -- how many there are
  digest  INTEGER NOT NULL, -- their sums, each added by exclusive or
  sum     INTEGER NOT NULL
) STRICT;
