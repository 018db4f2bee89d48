# Poolkeeper: what people run. `make` alone lists it.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS   += --no-print-directory

# Works in a clone without tags, and in a source archive without .git.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# For slower machines, and for parts: make test TEST_TIMEOUT=20m PACKAGES=./zkmodel/...
TEST_TIMEOUT  ?= 15m
BENCH_TIMEOUT ?= 30m
PACKAGES      ?= ./...
SOAK          ?= 10m
BENCH         ?= .

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Build, upload and boot a real image on this machine; KEEP=1 stays up until Ctrl-C
	@scripts/prerequisites demo
	@$(MAKE) build
	@KEEP='$(KEEP)' scripts/demo

.PHONY: test
test: bin/gotestsum ## Run every test, with -race, against a real ZooKeeper
	@scripts/prerequisites test
	bin/gotestsum --format standard-quiet -- \
		-race -timeout $(TEST_TIMEOUT) $(TESTFLAGS) $(PACKAGES)

.PHONY: test-openstack
test-openstack: ## Test against a real OpenStack, started on loopback and stopped again
	@scripts/prerequisites openstack
	test/openstack/run

.PHONY: soak
soak: ## Let requestors and killers loose on three launchers; SOAK=10m, SEED= repeats
	@scripts/prerequisites test
	go test -race -v -count 1 -timeout 2h -run TestSoak ./test/soak -soak $(SOAK) $(if $(SEED),-seed $(SEED))

.PHONY: lint
lint: bin/golangci-lint ## Check Go, shell and the layout of the tree
	@scripts/prerequisites lint
	@failed=; \
	scripts/check || failed=1; \
	go vet ./... || failed=1; \
	bin/golangci-lint run || failed=1; \
	[ -z "$$failed" ]

.PHONY: fmt
fmt: bin/golangci-lint ## Format the Go files (gofumpt, gci)
	bin/golangci-lint fmt

.PHONY: bench
bench: ## Measure, beside the raw limits of the same run
	@scripts/prerequisites test
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout $(BENCH_TIMEOUT) \
		$(or $(BENCH_PACKAGES),$$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -r dirname | sort -u))

# go build knows what is stale better than make does; it takes 0.2 s when nothing is.
.PHONY: build
build: ## Build bin/poolkeeper, one static binary
	CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags '-s -w -X main.version=$(VERSION)' -o bin/poolkeeper ./cmd/poolkeeper

.PHONY: clean
clean: ## Remove what the build made
	rm -rf bin

# The tools have their own requirements (scripts/tools/go.mod), and are built
# once: again only when a version there changes.
bin/golangci-lint: scripts/tools/go.mod scripts/tools/go.sum
	go -C scripts/tools build -trimpath -buildvcs=false -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

bin/gotestsum: scripts/tools/go.mod scripts/tools/go.sum
	go -C scripts/tools build -trimpath -buildvcs=false -o $(CURDIR)/$@ gotest.tools/gotestsum
	@touch $@
