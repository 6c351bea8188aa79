-- name: terms_id
-- The id of a set of terms.
SELECT id FROM terms WHERE body = ?;

-- name: terms_body
-- A set of terms by id.
SELECT body FROM terms WHERE id = ?;

-- name: insert_terms
-- Keep a set of terms that was not seen before.
INSERT INTO terms (body) VALUES (?) RETURNING id;

-- name: insert_approval
-- A new approval; the same request opened again changes nothing.
INSERT INTO approvals (id, status, rank, version, chain, entry, terms, state) VALUES (?, ?, ?, 0, ?, ?, ?, '')
ON CONFLICT (id) DO NOTHING RETURNING seq;

-- name: insert_body
-- The part of an approval that never changes.
INSERT INTO bodies (seq, digest, args, body) VALUES (?, ?, ?, ?);

-- name: approval
-- One approval, whole.
SELECT a.seq, a.id, a.status, a.version, a.terms, a.state, b.digest, b.args, b.body
FROM approvals a JOIN bodies b ON b.seq = a.seq WHERE a.id = ?;

-- name: version
-- The version of an approval, its newest entry, the head of its chain and the newest entry of all.
SELECT a.version, a.entry, c.id, c.n, c.head, (SELECT coalesce(max(seq), 0) FROM entries)
FROM approvals a JOIN chains c ON c.id = a.chain WHERE a.id = ?;

-- name: update_approval
-- The next version of an approval, if it is still at the version that was read.
UPDATE approvals SET status = ?, rank = ?, version = version + 1, entry = ?, state = ?
WHERE seq = ? AND version = ?;

-- name: update_entry
-- The newest entry about an approval that did not change otherwise.
UPDATE approvals SET entry = ? WHERE seq = ?;

-- name: page
-- A page of one status by rank, after a cursor.
SELECT a.seq, a.id, a.status, a.version, a.terms, a.state, b.digest, b.args, b.body, a.rank
FROM approvals a JOIN bodies b ON b.seq = a.seq
WHERE a.status = ? AND (a.rank, a.seq) > (?, ?) ORDER BY a.rank, a.seq LIMIT ?;

-- name: page_all
-- A page of every status, newest first, before a cursor.
SELECT a.seq, a.id, a.status, a.version, a.terms, a.state, b.digest, b.args, b.body, a.rank
FROM approvals a JOIN bodies b ON b.seq = a.seq
WHERE a.seq < ? ORDER BY a.seq DESC LIMIT ?;

-- name: counts
-- How many approvals are in each status.
SELECT status, count(*) FROM approvals GROUP BY status;

-- name: ids_like
-- The ids that start with what a person typed.
SELECT id FROM approvals WHERE id >= ? AND id < ? ORDER BY id LIMIT ?;

-- name: due
-- What of one status time alone changes now, oldest first.
SELECT id FROM approvals WHERE status = ? AND rank < ? ORDER BY rank LIMIT ?;

-- name: chain
-- The chain of a thread, and the newest entry of all.
SELECT id, n, head, (SELECT coalesce(max(seq), 0) FROM entries) FROM chains WHERE thread = ?;

-- name: insert_chain
-- Start the chain of a thread.
INSERT INTO chains (thread, n, head) VALUES (?, 0, ?) RETURNING id;

-- name: update_chain
-- Move the head of a chain.
UPDATE chains SET n = ?, head = ? WHERE id = ?;

-- name: insert_entry
-- One audit entry.
INSERT INTO entries (seq, chain, n, at, kind, approval, before, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: entries
-- Audit entries in the order they were written, after a cursor.
SELECT e.seq, c.thread, e.n, e.at, e.kind, coalesce(a.id, ''), e.body, e.hash
FROM entries e JOIN chains c ON c.id = e.chain LEFT JOIN approvals a ON a.seq = e.approval
WHERE e.seq > ? ORDER BY e.seq LIMIT ?;

-- name: entries_of
-- The audit entries of one approval, found from the newest back.
WITH RECURSIVE trail (seq, before) AS (
  SELECT e.seq, e.before FROM approvals a JOIN entries e ON e.seq = a.entry WHERE a.id = ?
  UNION ALL
  SELECT e.seq, e.before FROM trail t JOIN entries e ON e.seq = t.before
)
SELECT e.seq, c.thread, e.n, e.at, e.kind, coalesce(a.id, ''), e.body, e.hash
FROM trail t JOIN entries e ON e.seq = t.seq JOIN chains c ON c.id = e.chain
LEFT JOIN approvals a ON a.seq = e.approval ORDER BY e.seq;

-- name: last_entry
-- The newest audit entry's number.
SELECT coalesce(max(seq), 0) FROM entries;

-- name: changed
-- The approvals that have audit entries after a cursor.
SELECT DISTINCT a.id FROM entries e JOIN approvals a ON a.seq = e.approval WHERE e.seq > ?;

-- name: chains
-- Every chain with its head.
SELECT thread, n, head FROM chains ORDER BY id;

-- name: statuses
-- Every approval with its status, for comparing with the audit.
SELECT id, status FROM approvals ORDER BY seq;

-- name: cursor
-- How far something was read.
SELECT seq FROM cursors WHERE name = ?;

-- name: move_cursor
-- Remember how far something was read; never backwards.
INSERT INTO cursors (name, seq) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET seq = max(cursors.seq, excluded.seq);

-- name: use_totp_step
-- Spend a one-time password step; a step that was spent before changes nothing.
INSERT INTO totp_steps (person, step) VALUES (?, ?)
ON CONFLICT (person) DO UPDATE SET step = excluded.step WHERE excluded.step > totp_steps.step;
