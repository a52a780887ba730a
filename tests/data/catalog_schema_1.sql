CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    ready INTEGER NOT NULL,               -- 0 while its chunks are being written
    kind TEXT NOT NULL, format TEXT NOT NULL, title TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, sha256 TEXT NOT NULL,
    modified TEXT NOT NULL, indexed TEXT NOT NULL,
    encoding TEXT, dialect TEXT, language TEXT, date TEXT, tags TEXT NOT NULL, pages INTEGER, row_count INTEGER,
    status TEXT NOT NULL, notices TEXT NOT NULL, metadata TEXT NOT NULL, card TEXT, table_file TEXT
);
CREATE UNIQUE INDEX documents_by_source ON documents (source) WHERE ready = 1;
CREATE TABLE texts (document INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL, ordinal INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
    text TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL, heading TEXT NOT NULL, header TEXT NOT NULL,
    page INTEGER, page_label TEXT, row_first INTEGER, row_last INTEGER,
    hash TEXT NOT NULL,                   -- of what is embedded
    vector INTEGER NOT NULL DEFAULT 0     -- 0 none yet, 1 in the vector index, 2 the embedder failed
);
CREATE INDEX chunks_by_document ON chunks (document, ordinal);
CREATE INDEX chunks_by_vector ON chunks (vector, kind, number) WHERE vector <> 1;
CREATE INDEX chunks_by_id ON chunks (id);
CREATE TABLE vectors (fingerprint TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX vectors_by_hash ON vectors (fingerprint, hash);
CREATE TABLE failures (hash TEXT PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, leg TEXT NOT NULL, op TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL);
CREATE INDEX outbox_by_leg ON outbox (leg, seq);
CREATE TABLE unread (source TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, report TEXT NOT NULL);
CREATE TABLE reports (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
