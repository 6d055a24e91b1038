-- What discovery knows of the tools that servers offer, and which definitions
-- they had.

-- +goose Up
ALTER TABLE tools ADD COLUMN upstream TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN hash TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN held TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN held_since BIGINT;
ALTER TABLE tools ADD COLUMN missing_since BIGINT;
ALTER TABLE tools ADD COLUMN flags TEXT;
ALTER TABLE tools ADD COLUMN pending TEXT;

-- version is that of the tool which brought the definition. Only the newest are
-- kept. The tool is no foreign key: while a discovery fills both tables
-- PostgreSQL would check each row by a plan that it made for a table of a few.
CREATE TABLE tool_versions (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    tool       TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    hash       TEXT   NOT NULL,
    definition TEXT   NOT NULL,
    found_at   BIGINT NOT NULL,
    PRIMARY KEY (project, tool, version)
);

-- +goose Down
DROP TABLE tool_versions;
ALTER TABLE tools DROP COLUMN pending;
ALTER TABLE tools DROP COLUMN flags;
ALTER TABLE tools DROP COLUMN missing_since;
ALTER TABLE tools DROP COLUMN held_since;
ALTER TABLE tools DROP COLUMN held;
ALTER TABLE tools DROP COLUMN hash;
ALTER TABLE tools DROP COLUMN title;
ALTER TABLE tools DROP COLUMN upstream;
