-- The catalog: the truth about every file and chunk. Texts live here; Chroma holds only vectors and few keys.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE generation (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    identity   TEXT NOT NULL,               -- fingerprint of the model identity
    model      TEXT NOT NULL,               -- its name, for people
    dimension  INTEGER NOT NULL,
    collection TEXT NOT NULL UNIQUE,        -- name in the vector index
    state      TEXT NOT NULL CHECK (state IN ('building', 'live', 'retired')),
    lexical    TEXT NOT NULL,               -- fingerprint of the tokenizer its lexical table was built with
    epoch      INTEGER NOT NULL DEFAULT 0,  -- when retired: queries that began before it may still need it
    created_ns INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX generation_one_live ON generation (state) WHERE state = 'live';
CREATE UNIQUE INDEX generation_one_building ON generation (state) WHERE state = 'building';

CREATE TABLE file (
    id           INTEGER PRIMARY KEY,
    generation   INTEGER NOT NULL REFERENCES generation (id),
    root         TEXT NOT NULL,             -- the root's name
    path         BLOB NOT NULL,             -- raw bytes of the path in the root
    size         INTEGER NOT NULL,
    mtime_ns     INTEGER NOT NULL,
    ctime_ns     INTEGER NOT NULL,
    inode        INTEGER NOT NULL,
    device       INTEGER NOT NULL,
    trusted      INTEGER NOT NULL,          -- 0: times were younger than 2 s when it was read
    content_hash BLOB NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('indexed', 'skipped', 'failed')),
    reason       TEXT NOT NULL DEFAULT '',
    detail       TEXT NOT NULL DEFAULT '',
    recipe       TEXT NOT NULL DEFAULT '',
    type         TEXT NOT NULL DEFAULT '',
    chunker      TEXT NOT NULL DEFAULT '',
    title        TEXT NOT NULL DEFAULT '',
    language     TEXT,
    encoding     TEXT NOT NULL DEFAULT '',
    metadata     TEXT NOT NULL DEFAULT '{}', -- JSON object (front matter ...)
    tags         TEXT NOT NULL DEFAULT '[]', -- JSON array of strings
    chunk_count  INTEGER NOT NULL DEFAULT 0,
    stale        INTEGER NOT NULL DEFAULT 0, -- its chunks are those of an older version
    attempts     INTEGER NOT NULL DEFAULT 0,
    retry_at_ns  INTEGER,
    indexed_ns   INTEGER,
    UNIQUE (generation, root, path)
) STRICT;
CREATE INDEX file_by_content ON file (generation, content_hash);
CREATE INDEX file_not_indexed ON file (generation, state, id) WHERE state <> 'indexed';
CREATE INDEX file_retry ON file (generation, retry_at_ns) WHERE retry_at_ns IS NOT NULL;

-- canonical texts of formats whose bytes are not the text
CREATE TABLE file_text (
    file_id INTEGER PRIMARY KEY REFERENCES file (id) ON DELETE CASCADE,
    text    TEXT NOT NULL
) STRICT;

CREATE TABLE dropped (
    file_id INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    start   INTEGER NOT NULL,
    stop    INTEGER NOT NULL,
    reason  TEXT NOT NULL
) STRICT;
CREATE INDEX dropped_by_file ON dropped (file_id);

CREATE TABLE parent (
    file_id    INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    id         TEXT NOT NULL,
    kind       TEXT NOT NULL,
    title      TEXT NOT NULL,
    section    TEXT NOT NULL,               -- JSON array
    start      INTEGER NOT NULL,
    stop       INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line   INTEGER NOT NULL,
    PRIMARY KEY (file_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE chunk (
    rowid         INTEGER PRIMARY KEY AUTOINCREMENT, -- also the rowid in the lexical table; never used twice
    generation    INTEGER NOT NULL,
    id            TEXT NOT NULL,
    file_id       INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    -- short columns first: what is read of many rows does not lie behind long texts, on pages of their own
    vector        INTEGER NOT NULL CHECK (vector IN (0, 1, 2)),
                                            -- its row in the vector index: 0 to be written, 1 there, 2 blank: has none
    text_hash     BLOB NOT NULL,            -- hash of the embedded text: the key in the vector cache
    ordinal       INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    tokens        INTEGER NOT NULL,
    start_line    INTEGER NOT NULL,
    end_line      INTEGER NOT NULL,
    page          INTEGER,
    language      TEXT,
    parent        TEXT,
    locator       TEXT,
    symbol        TEXT,
    section       TEXT NOT NULL,            -- JSON array
    spans         TEXT NOT NULL,            -- JSON [[start, end] ...]
    overlap_spans TEXT NOT NULL,
    prefix        TEXT NOT NULL,
    overlap       TEXT NOT NULL,
    text          TEXT NOT NULL,
    rendered      TEXT,                     -- NULL: the text itself with \n newlines
    UNIQUE (generation, id)
) STRICT;
CREATE INDEX chunk_by_file ON chunk (file_id, ordinal);
CREATE INDEX chunk_by_text ON chunk (text_hash);
CREATE INDEX chunk_without_row ON chunk (generation, id) WHERE vector = 0;

-- an id that may be in the vector index and must not be
CREATE TABLE pending (
    generation INTEGER NOT NULL,
    id         TEXT NOT NULL,
    epoch      INTEGER NOT NULL,            -- queries that began before it may still need the row
    PRIMARY KEY (generation, id)
) STRICT, WITHOUT ROWID;

-- how many files and chunks, kept by triggers so that a status costs nothing at a million files
CREATE TABLE tally (
    generation INTEGER NOT NULL,
    root       TEXT NOT NULL,
    state      TEXT NOT NULL,
    files      INTEGER NOT NULL,
    chunks     INTEGER NOT NULL,
    PRIMARY KEY (generation, root, state)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER file_tally_insert AFTER INSERT ON file BEGIN
    INSERT INTO tally VALUES (NEW.generation, NEW.root, NEW.state, 1, NEW.chunk_count)
    ON CONFLICT DO UPDATE SET files = files + 1, chunks = chunks + excluded.chunks;
END;
CREATE TRIGGER file_tally_delete AFTER DELETE ON file BEGIN
    UPDATE tally SET files = files - 1, chunks = chunks - OLD.chunk_count
    WHERE generation = OLD.generation AND root = OLD.root AND state = OLD.state;
END;
CREATE TRIGGER file_tally_update AFTER UPDATE OF state, chunk_count, root, generation ON file BEGIN
    UPDATE tally SET files = files - 1, chunks = chunks - OLD.chunk_count
    WHERE generation = OLD.generation AND root = OLD.root AND state = OLD.state;
    INSERT INTO tally VALUES (NEW.generation, NEW.root, NEW.state, 1, NEW.chunk_count)
    ON CONFLICT DO UPDATE SET files = files + 1, chunks = chunks + excluded.chunks;
END;

-- The lexical tables are made with their generation: lexical_<id>, FTS5 without content, rowid = chunk.rowid.
