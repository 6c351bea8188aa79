-- Terms are shared by all approvals of one rule, so each distinct set is kept once.
CREATE TABLE terms (
  id INTEGER PRIMARY KEY,
  body TEXT NOT NULL UNIQUE
);

-- One hash chain per thread; n counts its entries, head is the hash of the last.
CREATE TABLE chains (
  id INTEGER PRIMARY KEY,
  thread TEXT NOT NULL UNIQUE,
  n INTEGER NOT NULL,
  head BLOB NOT NULL
);

-- The narrow row that lists, counts, sweeps and decides read. seq is the order of arrival.
-- rank orders approvals of one status: the deadline of a pending one, the end of the lease of
-- a running one, so that the same index serves pages and tells what is overdue.
-- entry is the newest audit entry about it.
CREATE TABLE approvals (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL,
  rank INTEGER NOT NULL,
  version INTEGER NOT NULL,
  chain INTEGER NOT NULL REFERENCES chains (id),
  entry INTEGER NOT NULL,
  terms INTEGER NOT NULL REFERENCES terms (id),
  state TEXT NOT NULL
);
CREATE INDEX approvals_by_rank ON approvals (status, rank);

-- What never changes after the opening, apart so that lists stay narrow. args are the bytes
-- that digest is over.
CREATE TABLE bodies (
  seq INTEGER PRIMARY KEY REFERENCES approvals (seq),
  digest BLOB NOT NULL,
  args BLOB NOT NULL,
  body TEXT NOT NULL
);

-- The audit: appended in the same transaction as what it records, never changed. It is the
-- outbox too: what people should be told are its entries after a cursor. approval is the
-- approval's seq, 0 for an action nobody was asked about; its id is part of the hash.
-- before is the entry before this one about the same approval, 0 for the first.
CREATE TABLE entries (
  seq INTEGER PRIMARY KEY,
  chain INTEGER NOT NULL REFERENCES chains (id),
  n INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  approval INTEGER NOT NULL,
  before INTEGER NOT NULL,
  body TEXT NOT NULL,
  hash BLOB NOT NULL
);
CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
BEGIN SELECT RAISE (ABORT, 'audit entries are never changed'); END;
CREATE TRIGGER entries_never_go BEFORE DELETE ON entries
BEGIN SELECT RAISE (ABORT, 'audit entries are never deleted'); END;

-- How far the outbox was delivered.
CREATE TABLE cursors (
  name TEXT PRIMARY KEY,
  seq INTEGER NOT NULL
) WITHOUT ROWID;

-- The last one-time password step each person used, so that none works twice.
CREATE TABLE totp_steps (
  person TEXT PRIMARY KEY,
  step INTEGER NOT NULL
) WITHOUT ROWID;
