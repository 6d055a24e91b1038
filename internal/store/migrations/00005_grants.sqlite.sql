-- Who is related to what. key is resource#relation@subject.

-- +goose Up
-- There may be a million of them: the rows lie in the order in which they are
-- read, once.
CREATE TABLE grants (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    key        TEXT   NOT NULL,
    resource   TEXT   NOT NULL,
    relation   TEXT   NOT NULL,
    subject    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project, key)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE grants;
