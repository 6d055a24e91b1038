-- Who may do what, what is secret, what is going on and what has happened.

-- +goose Up
CREATE TABLE users (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    id         TEXT   NOT NULL,
    groups     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project, id)
);

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

CREATE TABLE policies (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name       TEXT   NOT NULL,
    rego       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);

-- value is sealed: useless without the server's key.
CREATE TABLE secrets (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name       TEXT   NOT NULL,
    value      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);

-- hash is that of the key; the key itself is shown once and never kept.
CREATE TABLE api_keys (
    id         TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    hash       TEXT   NOT NULL UNIQUE,
    role       TEXT   NOT NULL,
    project    TEXT REFERENCES projects (id) ON DELETE CASCADE,
    agents     TEXT,
    groups     TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE sessions (
    project    TEXT   NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    id         TEXT   NOT NULL,
    agent      TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    groups     TEXT,
    state      TEXT   NOT NULL,
    question   TEXT   NOT NULL,
    history    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project, id)
);

CREATE TABLE transitions (
    project    TEXT   NOT NULL,
    session    TEXT   NOT NULL,
    number     BIGINT NOT NULL,
    tool       TEXT   NOT NULL,
    from_state TEXT   NOT NULL,
    to_state   TEXT   NOT NULL,
    moved_at   BIGINT NOT NULL,
    PRIMARY KEY (project, session, number),
    FOREIGN KEY (project, session) REFERENCES sessions (project, id) ON DELETE CASCADE
);

-- Append-only. hash chains each record to the one before it.
CREATE TABLE audit (
    project TEXT   NOT NULL,
    number  BIGINT NOT NULL,
    time    BIGINT NOT NULL,
    record  TEXT   NOT NULL,
    hash    TEXT   NOT NULL,
    PRIMARY KEY (project, number)
);

-- +goose Down
DROP TABLE audit;
DROP TABLE transitions;
DROP TABLE sessions;
DROP TABLE api_keys;
DROP TABLE secrets;
DROP TABLE policies;
DROP TABLE relations;
DROP TABLE users;
