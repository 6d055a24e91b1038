-- Who is related to what. key is resource#relation@subject.

-- +goose Up
-- There may be a million of them: keys are compared by their bytes, as the
-- catalog orders them and many times faster than by the rules of a language.
CREATE TABLE grants (
    project    TEXT             NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    key        TEXT COLLATE "C" NOT NULL,
    resource   TEXT             NOT NULL,
    relation   TEXT             NOT NULL,
    subject    TEXT             NOT NULL,
    created_at BIGINT           NOT NULL,
    PRIMARY KEY (project, key)
);

-- +goose Down
DROP TABLE grants;
