-- Which rule decides, as what policies know people, and how fresh the grants of
-- a cluster must be read.

-- +goose Up
ALTER TABLE projects ADD COLUMN policy_query TEXT NOT NULL DEFAULT 'data.quartermaster.tools.allow';
ALTER TABLE projects ADD COLUMN grants_token TEXT NOT NULL DEFAULT '';

ALTER TABLE users ADD COLUMN roles TEXT;

-- Never used: grants are kept as people write them.
DROP TABLE relations;

-- +goose Down
CREATE TABLE relations (
    project          TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    resource_type    TEXT   NOT NULL,
    resource_id      TEXT   NOT NULL,
    relation         TEXT   NOT NULL,
    subject_type     TEXT   NOT NULL,
    subject_id       TEXT   NOT NULL,
    subject_relation TEXT   NOT NULL,
    created_at       BIGINT NOT NULL,
    PRIMARY KEY (project, resource_type, resource_id, relation, subject_type, subject_id, subject_relation)
);
ALTER TABLE users DROP COLUMN roles;
ALTER TABLE projects DROP COLUMN grants_token;
ALTER TABLE projects DROP COLUMN policy_query;
