-- Times are microseconds since 1970 (UTC), durations nanoseconds; lists and objects are JSON text.
-- Every statement is valid for both SQLite and PostgreSQL.

-- +goose Up
CREATE TABLE projects (
    id         TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    plan       TEXT   NOT NULL,
    revision   BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

-- What changed at which revision, so that another process can follow without
-- reading everything again. Only the newest revisions are kept.
CREATE TABLE changes (
    project  TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    revision BIGINT NOT NULL,
    noun     TEXT   NOT NULL,
    key      TEXT   NOT NULL,
    PRIMARY KEY (project, revision, noun, key)
);

CREATE TABLE servers (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name       TEXT   NOT NULL,
    settings   TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);

CREATE TABLE tools (
    project       TEXT    NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    id            TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    display_name  TEXT    NOT NULL,
    description   TEXT    NOT NULL,
    category      TEXT    NOT NULL,
    provider      TEXT    NOT NULL,
    server        TEXT,
    origin        TEXT    NOT NULL,
    input_schema  TEXT    NOT NULL,
    output_schema TEXT,
    annotations   TEXT,
    config        TEXT,
    enabled       BOOLEAN NOT NULL,
    groups        TEXT,
    state         TEXT    NOT NULL,
    states        TEXT,
    timeout       BIGINT  NOT NULL,
    version       BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    PRIMARY KEY (project, id),
    UNIQUE (project, name),
    FOREIGN KEY (project, server) REFERENCES servers (project, name) ON DELETE CASCADE
);
CREATE INDEX tools_server ON tools (project, server);

CREATE TABLE agents (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    id         TEXT   NOT NULL,
    definition TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project, id)
);

CREATE TABLE bindings (
    project    TEXT   NOT NULL,
    agent      TEXT   NOT NULL,
    tool       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project, agent, tool),
    FOREIGN KEY (project, tool) REFERENCES tools (project, id) ON DELETE CASCADE
);
CREATE INDEX bindings_tool ON bindings (project, tool);

-- +goose Down
DROP TABLE bindings;
DROP TABLE agents;
DROP TABLE tools;
DROP TABLE servers;
DROP TABLE changes;
DROP TABLE projects;
