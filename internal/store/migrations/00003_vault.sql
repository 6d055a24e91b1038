-- What the key that seals secrets must be able to open.

-- +goose Up
CREATE TABLE vault (
    id          BIGINT NOT NULL PRIMARY KEY,
    check_value TEXT   NOT NULL
);

-- +goose Down
DROP TABLE vault;
