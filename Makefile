SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL: # what `test` asks for has an order

TOOL := go tool -modfile=tools/go.mod

.PHONY: help
help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build and serve the quickstart, with its data in .data
	@bin/quartermaster serve --data .data --apply examples/quickstart.yaml

.PHONY: build
build: ## Build bin/quartermaster
	@version=$$(git describe --tags --always --dirty 2>/dev/null || echo dev); \
	go build -trimpath -ldflags "-X main.version=$$version" -o bin/quartermaster ./cmd/quartermaster

# Where the MCP servers are that tests connect to: outside the tree, so that it
# is done once.
NPM := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quartermaster/npm

# A test that could not find its database or its servers must fail here, not be
# skipped.
.PHONY: test
test: export QUARTERMASTER_REQUIRE_POSTGRES := 1
test: export QUARTERMASTER_NPM := $(NPM)
test: deps vet lint ## Everything that must hold: vet, lint and all tests under the race detector
	CGO_ENABLED=1 $(TOOL) gotestsum --format standard-quiet -- -race ./...

.PHONY: vet
vet: ## Run go vet
	go vet ./...

.PHONY: lint
lint: ## Run the linters and check the formatting (the first run builds them: two minutes)
	$(TOOL) golangci-lint run

.PHONY: fmt
fmt: ## Format all Go files as lint wants them
	$(TOOL) golangci-lint fmt

.PHONY: bench
bench: ## Run all benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: fuzz
fuzz: ## Run every fuzz test for ten seconds
	@for pkg in $$(go list ./...); do \
	  tests=$$(go test -list '^Fuzz' $$pkg) || { echo "$$tests"; exit 1; }; \
	  for name in $$(grep '^Fuzz' <<<"$$tests" || true); do \
	    echo "$$pkg $$name"; \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime 10s $$pkg; \
	  done; \
	done

.PHONY: deps
deps: deps-modules deps-postgres deps-npm ## Fetch modules, tools and MCP servers; install PostgreSQL and Node if they are missing

# Module sources answer 429 under load and the go command does not retry. What
# was fetched stays fetched, so every round gets further. Listing packages, not
# `go mod download`, asks only for the modules that are really compiled.
define retry
@for wait in 2 5 10 20 40 60 0; do \
  err=$$($(1) 2>&1 >/dev/null) && exit 0; \
  grep -Eiq '429|too many requests|50[0-9] |timeout|reset|refused|EOF' <<<"$$err" || break; \
  [ $$wait = 0 ] || { echo "a source is busy, again in $$wait s"; sleep $$wait; }; \
done; \
echo "$$err" >&2; exit 1
endef

.PHONY: deps-modules
deps-modules:
	$(call retry,go list -deps -test ./...)
	$(call retry,go list -modfile=tools/go.mod -deps tool)

# The places where internal/store/storetest looks.
POSTGRES := initdb /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb \
  /opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb
APT_GET := DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5

# Tests start servers of their own: the package is told to make and start none.
.PHONY: deps-postgres
deps-postgres:
	@for initdb in $(POSTGRES); do command -v "$$initdb" >/dev/null && exit 0; done; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	  echo "The tests need a PostgreSQL server: install it (Debian: apt-get install postgresql," \
	    "Fedora: dnf install postgresql-server, macOS: brew install postgresql)." >&2; exit 1; \
	fi; \
	echo "installing PostgreSQL"; \
	conf=/etc/postgresql-common/createcluster.conf; \
	[ -e $$conf ] || { mkdir -p $${conf%/*}; echo "create_main_cluster = false" >$$conf; }; \
	$(APT_GET) update; \
	$(APT_GET) install --no-install-recommends -o Dpkg::Options::=--force-confold postgresql >/dev/null

MCP_SERVERS := $(foreach s,everything filesystem memory,@modelcontextprotocol/server-$(s)@2026.8.31)

.PHONY: deps-npm
deps-npm:
	@[ "$$(cat $(NPM)/installed 2>/dev/null)" != "$(MCP_SERVERS)" ] || exit 0; \
	if ! command -v npm >/dev/null; then \
	  if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo "The tests need Node and npm: install them (Debian: apt-get install nodejs npm)." >&2; exit 1; \
	  fi; \
	  echo "installing Node"; $(APT_GET) update; $(APT_GET) install --no-install-recommends nodejs npm >/dev/null; \
	fi; \
	echo "installing MCP servers"; mkdir -p $(NPM); \
	for wait in 2 5 10 20 0; do \
	  if npm install --prefix $(NPM) --silent --no-audit --no-fund $(MCP_SERVERS); then echo "$(MCP_SERVERS)" >$(NPM)/installed; exit 0; fi; \
	  sleep $$wait; \
	done; exit 1

.PHONY: clean
clean: ## Remove what was built, not the data
	rm -rf bin coverage*
