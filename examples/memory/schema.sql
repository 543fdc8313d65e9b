-- What an agent did and learned. Times are UTC text such as 2026-03-02T09:00:00Z; lists are JSON.

CREATE TABLE IF NOT EXISTS episodes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    task_description TEXT NOT NULL,
    domain TEXT NOT NULL,
    task_type TEXT NOT NULL,
    complexity TEXT NOT NULL,
    language TEXT,
    framework TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    status TEXT NOT NULL DEFAULT 'in_progress',
    outcome_type TEXT,
    created_at TEXT NOT NULL,
    completed_at TEXT,
    duration_ms INTEGER,
    reward_score REAL,
    patterns TEXT NOT NULL DEFAULT '[]',
    reflection TEXT,
    artifacts TEXT NOT NULL DEFAULT '[]',
    metadata TEXT NOT NULL DEFAULT '{}'
);

CREATE TABLE IF NOT EXISTS steps (
    episode TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    tool TEXT NOT NULL,
    action TEXT NOT NULL,
    observation TEXT NOT NULL DEFAULT '',
    success INTEGER NOT NULL,
    latency_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (episode, number)
);

CREATE TABLE IF NOT EXISTS relationships (
    source TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    target TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (source, kind, target)
);

CREATE VIRTUAL TABLE IF NOT EXISTS episode_index USING fts5 (
    task, labels, learned, tokenize = 'porter unicode61'
);
