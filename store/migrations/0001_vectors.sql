-- The vector cache: no text is embedded twice. It can be lost: then texts are embedded again.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE model (
    id          INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE vector (
    id             INTEGER PRIMARY KEY,
    model          INTEGER NOT NULL REFERENCES model (id),
    text_hash      BLOB NOT NULL,
    vector         BLOB NOT NULL,           -- float32, little endian, unit length
    unused_since_s INTEGER,                 -- when nothing was first seen to refer to it; NULL: in use, or not looked at yet
    UNIQUE (model, text_hash)
) STRICT;
CREATE INDEX vector_unused ON vector (unused_since_s) WHERE unused_since_s IS NOT NULL;
