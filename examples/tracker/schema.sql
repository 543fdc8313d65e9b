-- The tracker's tables. Times are UTC text such as 2026-03-02T09:00:00Z, days such as 2026-03-02.

CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS members (
    handle TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'guest')),
    active INTEGER NOT NULL DEFAULT 1,
    joined_at TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS labels (name TEXT PRIMARY KEY, color TEXT NOT NULL, description TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS projects (
    key TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    lead TEXT NOT NULL REFERENCES members (handle),
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'archived')),
    created_at TEXT NOT NULL,
    next_number INTEGER NOT NULL DEFAULT 1
);

CREATE TABLE IF NOT EXISTS project_members (
    project TEXT NOT NULL REFERENCES projects (key),
    member TEXT NOT NULL REFERENCES members (handle),
    PRIMARY KEY (project, member)
);

CREATE TABLE IF NOT EXISTS milestones (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL REFERENCES projects (key),
    name TEXT NOT NULL,
    goal TEXT NOT NULL DEFAULT '',
    starts_on TEXT NOT NULL,
    due_on TEXT NOT NULL,
    closed_at TEXT,
    UNIQUE (project, name)
);

CREATE TABLE IF NOT EXISTS issues (
    key TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (key),
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT 'backlog',
    priority TEXT NOT NULL DEFAULT 'medium',
    assignee TEXT REFERENCES members (handle),
    reporter TEXT NOT NULL REFERENCES members (handle),
    milestone INTEGER REFERENCES milestones (id),
    parent TEXT REFERENCES issues (key) ON UPDATE CASCADE,
    estimate_hours REAL,
    due_on TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    closed_at TEXT
);

CREATE TABLE IF NOT EXISTS issue_labels (
    issue TEXT NOT NULL REFERENCES issues (key) ON UPDATE CASCADE ON DELETE CASCADE,
    label TEXT NOT NULL REFERENCES labels (name),
    PRIMARY KEY (issue, label)
);

CREATE TABLE IF NOT EXISTS issue_links (
    source TEXT NOT NULL REFERENCES issues (key) ON UPDATE CASCADE ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('blocks', 'relates_to', 'duplicates')),
    target TEXT NOT NULL REFERENCES issues (key) ON UPDATE CASCADE ON DELETE CASCADE,
    PRIMARY KEY (source, kind, target)
);

CREATE TABLE IF NOT EXISTS comments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issue TEXT NOT NULL REFERENCES issues (key) ON UPDATE CASCADE ON DELETE CASCADE,
    thread INTEGER REFERENCES comments (id) ON DELETE CASCADE,
    author TEXT NOT NULL REFERENCES members (handle),
    body TEXT NOT NULL,
    created_at TEXT NOT NULL,
    edited_at TEXT,
    deleted INTEGER NOT NULL DEFAULT 0,
    resolved_by TEXT REFERENCES members (handle)
);

CREATE TABLE IF NOT EXISTS comment_revisions (
    comment INTEGER NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    body TEXT NOT NULL,
    replaced_at TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS reactions (
    comment INTEGER NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    member TEXT NOT NULL REFERENCES members (handle),
    emoji TEXT NOT NULL,
    PRIMARY KEY (comment, member, emoji)
);

-- Attachments and stored files share content by checksum.
CREATE TABLE IF NOT EXISTS blobs (sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);

CREATE TABLE IF NOT EXISTS attachments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issue TEXT NOT NULL REFERENCES issues (key) ON UPDATE CASCADE ON DELETE CASCADE,
    filename TEXT NOT NULL,
    media_type TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    uploader TEXT NOT NULL REFERENCES members (handle),
    created_at TEXT NOT NULL,
    UNIQUE (issue, filename)
);

CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    sha256 TEXT REFERENCES blobs (sha256),  -- NULL for a folder
    owner TEXT NOT NULL REFERENCES members (handle),
    updated_at TEXT NOT NULL,
    trashed_at TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS one_file_per_path ON files (path) WHERE trashed_at IS NULL;

CREATE TABLE IF NOT EXISTS calendar_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    location TEXT NOT NULL DEFAULT '',
    organizer TEXT NOT NULL REFERENCES members (handle),
    project TEXT REFERENCES projects (key),
    starts_at TEXT NOT NULL,
    ends_at TEXT NOT NULL,
    repeats TEXT,           -- daily, weekly, monthly, or NULL for once
    every INTEGER NOT NULL DEFAULT 1,
    until TEXT
);

CREATE TABLE IF NOT EXISTS attendees (
    event INTEGER NOT NULL REFERENCES calendar_events (id) ON DELETE CASCADE,
    member TEXT NOT NULL REFERENCES members (handle),
    response TEXT NOT NULL DEFAULT 'invited',
    PRIMARY KEY (event, member)
);

CREATE TABLE IF NOT EXISTS skipped_occurrences (
    event INTEGER NOT NULL REFERENCES calendar_events (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    PRIMARY KEY (event, day)
);

CREATE TABLE IF NOT EXISTS channels (
    name TEXT PRIMARY KEY,
    topic TEXT NOT NULL DEFAULT '',
    private INTEGER NOT NULL DEFAULT 0,
    created_by TEXT NOT NULL REFERENCES members (handle),
    created_at TEXT NOT NULL,
    archived_at TEXT
);

CREATE TABLE IF NOT EXISTS channel_members (
    channel TEXT NOT NULL REFERENCES channels (name),
    member TEXT NOT NULL REFERENCES members (handle),
    last_read INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (channel, member)
);

CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL REFERENCES channels (name),
    thread INTEGER REFERENCES messages (id),
    author TEXT NOT NULL REFERENCES members (handle),
    body TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    edited_at TEXT,
    pinned INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS contacts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE COLLATE NOCASE,
    company TEXT NOT NULL DEFAULT '',
    phone TEXT NOT NULL DEFAULT '',
    position TEXT NOT NULL DEFAULT '',
    notes TEXT NOT NULL DEFAULT '',
    owner TEXT NOT NULL REFERENCES members (handle),
    created_at TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS interactions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    contact INTEGER NOT NULL REFERENCES contacts (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    summary TEXT NOT NULL,
    member TEXT NOT NULL REFERENCES members (handle),
    at TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS contact_issues (
    contact INTEGER NOT NULL REFERENCES contacts (id) ON DELETE CASCADE,
    issue TEXT NOT NULL REFERENCES issues (key) ON UPDATE CASCADE ON DELETE CASCADE,
    PRIMARY KEY (contact, issue)
);

CREATE TABLE IF NOT EXISTS documents (
    slug TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (key),
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    author TEXT NOT NULL REFERENCES members (handle),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS document_versions (
    document TEXT NOT NULL REFERENCES documents (slug) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL REFERENCES members (handle),
    message TEXT NOT NULL DEFAULT '',
    at TEXT NOT NULL,
    PRIMARY KEY (document, version)
);

CREATE TABLE IF NOT EXISTS time_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    member TEXT NOT NULL REFERENCES members (handle),
    issue TEXT NOT NULL REFERENCES issues (key) ON UPDATE CASCADE,
    started_at TEXT NOT NULL,
    ended_at TEXT,          -- NULL while the timer runs
    note TEXT NOT NULL DEFAULT '',
    billable INTEGER NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX IF NOT EXISTS one_timer_per_member ON time_entries (member) WHERE ended_at IS NULL;

CREATE TABLE IF NOT EXISTS submitted_weeks (
    member TEXT NOT NULL REFERENCES members (handle),
    monday TEXT NOT NULL,
    submitted_at TEXT NOT NULL,
    PRIMARY KEY (member, monday)
);

-- What happened. The activity feed, timelines and notifications are derived from it.
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    project TEXT,
    summary TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS events_by_subject ON events (subject, id);

CREATE TABLE IF NOT EXISTS watches (
    member TEXT NOT NULL REFERENCES members (handle),
    subject TEXT NOT NULL,
    PRIMARY KEY (member, subject)
);

CREATE TABLE IF NOT EXISTS notifications (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    member TEXT NOT NULL REFERENCES members (handle),
    event INTEGER NOT NULL REFERENCES events (id),
    topic TEXT NOT NULL,
    delivery TEXT NOT NULL,
    due_at TEXT NOT NULL,
    read_at TEXT
);

CREATE TABLE IF NOT EXISTS notification_preferences (
    member TEXT NOT NULL REFERENCES members (handle),
    topic TEXT NOT NULL,
    delivery TEXT NOT NULL,
    PRIMARY KEY (member, topic)
);

CREATE TABLE IF NOT EXISTS quiet_hours (
    member TEXT PRIMARY KEY REFERENCES members (handle),
    from_hour INTEGER NOT NULL,
    to_hour INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS saved_searches (
    member TEXT NOT NULL REFERENCES members (handle),
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    PRIMARY KEY (member, name)
);

-- Full text: one entry per searchable thing, kept by triggers, indexed by FTS5.
CREATE TABLE IF NOT EXISTS search_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    ref TEXT NOT NULL,
    project TEXT,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (kind, ref)
);
CREATE VIRTUAL TABLE IF NOT EXISTS search_index USING fts5 (
    title, body, content = 'search_entries', content_rowid = 'id', tokenize = 'porter unicode61'
);
CREATE VIRTUAL TABLE IF NOT EXISTS search_terms USING fts5vocab ('search_index', 'row');

CREATE TRIGGER IF NOT EXISTS entry_added AFTER INSERT ON search_entries BEGIN
    INSERT INTO search_index (rowid, title, body) VALUES (new.id, new.title, new.body);
END;
CREATE TRIGGER IF NOT EXISTS entry_changed AFTER UPDATE ON search_entries BEGIN
    INSERT INTO search_index (search_index, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
    INSERT INTO search_index (rowid, title, body) VALUES (new.id, new.title, new.body);
END;
CREATE TRIGGER IF NOT EXISTS entry_removed AFTER DELETE ON search_entries BEGIN
    INSERT INTO search_index (search_index, rowid, title, body)
        VALUES ('delete', old.id, old.title, old.body);
END;

CREATE TRIGGER IF NOT EXISTS issue_added AFTER INSERT ON issues BEGIN
    INSERT INTO search_entries (kind, ref, project, title, body)
        VALUES ('issue', new.key, new.project, new.title, new.description);
END;
CREATE TRIGGER IF NOT EXISTS issue_changed AFTER UPDATE OF key, project, title, description ON issues BEGIN
    UPDATE search_entries
        SET ref = new.key, project = new.project, title = new.title, body = new.description
        WHERE kind = 'issue' AND ref = old.key;
END;
CREATE TRIGGER IF NOT EXISTS issue_removed AFTER DELETE ON issues BEGIN
    DELETE FROM search_entries WHERE kind = 'issue' AND ref = old.key;
END;

CREATE TRIGGER IF NOT EXISTS comment_added AFTER INSERT ON comments BEGIN
    INSERT INTO search_entries (kind, ref, project, title, body)
        VALUES ('comment', new.id, (SELECT project FROM issues WHERE key = new.issue), '', new.body);
END;
CREATE TRIGGER IF NOT EXISTS comment_changed AFTER UPDATE OF issue, body ON comments BEGIN
    UPDATE search_entries
        SET project = (SELECT project FROM issues WHERE key = new.issue), body = new.body
        WHERE kind = 'comment' AND ref = CAST(new.id AS TEXT);
END;
CREATE TRIGGER IF NOT EXISTS comment_removed AFTER DELETE ON comments BEGIN
    DELETE FROM search_entries WHERE kind = 'comment' AND ref = CAST(old.id AS TEXT);
END;

CREATE TRIGGER IF NOT EXISTS document_added AFTER INSERT ON documents BEGIN
    INSERT INTO search_entries (kind, ref, project, title, body)
        VALUES ('document', new.slug, new.project, new.title, new.body);
END;
CREATE TRIGGER IF NOT EXISTS document_changed AFTER UPDATE OF project, title, body ON documents BEGIN
    UPDATE search_entries SET project = new.project, title = new.title, body = new.body
        WHERE kind = 'document' AND ref = new.slug;
END;
CREATE TRIGGER IF NOT EXISTS document_removed AFTER DELETE ON documents BEGIN
    DELETE FROM search_entries WHERE kind = 'document' AND ref = old.slug;
END;

CREATE TRIGGER IF NOT EXISTS message_added AFTER INSERT ON messages BEGIN
    INSERT INTO search_entries (kind, ref, title, body)
        VALUES ('message', new.id, new.channel, new.body);
END;
CREATE TRIGGER IF NOT EXISTS message_changed AFTER UPDATE OF body ON messages BEGIN
    UPDATE search_entries SET body = new.body WHERE kind = 'message' AND ref = CAST(new.id AS TEXT);
END;

CREATE TRIGGER IF NOT EXISTS contact_added AFTER INSERT ON contacts BEGIN
    INSERT INTO search_entries (kind, ref, title, body)
        VALUES ('contact', new.id, new.name, new.company || ' ' || new.email || ' ' || new.notes);
END;
CREATE TRIGGER IF NOT EXISTS contact_changed AFTER UPDATE ON contacts BEGIN
    UPDATE search_entries
        SET title = new.name, body = new.company || ' ' || new.email || ' ' || new.notes
        WHERE kind = 'contact' AND ref = CAST(new.id AS TEXT);
END;
CREATE TRIGGER IF NOT EXISTS contact_removed AFTER DELETE ON contacts BEGIN
    DELETE FROM search_entries WHERE kind = 'contact' AND ref = CAST(old.id AS TEXT);
END;
