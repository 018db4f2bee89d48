# Poolkeeper: what people run. `make` alone lists it.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS   += --no-print-directory

# Of a clone or a source archive; asked for once, and only where it is needed.
VERSION ?= $(eval VERSION := $$(shell scripts/version))$(VERSION)

# What a target needs is checked first of all, by scripts/prerequisites: what compiles
# comes behind it, in the recipe and not as a prerequisite of make's.

# For parts: make test PACKAGES=./zkmodel/... The longest come first, so that none of
# them begins when all others have ended. What ALL has again is run once.
# How long one package may take; test/pages, which boots guests in bare roots, takes eight
# minutes on two idle cores.
TEST_TIMEOUT  ?= 40m
# How often a test that failed is run again; a run that needed it says so at its end.
RERUN         ?= 0
BENCH_TIMEOUT ?= 30m
ALL           ?= ./...
PACKAGES      ?= ./test/pages ./launcher ./test/e2e ./cmd/poolkeeper ./builder ./zkmodel/recipe $(ALL)
CHAOS         ?= 10m
FUZZTIME      ?= 30s
PREFIX        ?= /usr/local
BENCH         ?= .

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

.PHONY: demo
demo: ## Build, upload and boot a real image on this machine; KEEP=1 stays up until Ctrl-C
	@scripts/prerequisites demo
	@$(MAKE) build
	@KEEP='$(KEEP)' scripts/demo

# go build knows what is stale better than make does; it takes 0.2 s when nothing is.
.PHONY: build
build: ## Build bin/poolkeeper, one static binary
	@scripts/prerequisites build
	CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags '-s -w -X poolkeeper/cmd/poolkeeper/app.Version=$(VERSION)' -o bin/poolkeeper ./cmd/poolkeeper

# Builds nothing, because under sudo there may be no Go, and another one's clone.
.PHONY: install
install: ## Install what build made, our elements and the schemas for editors; PREFIX=/usr/local, DESTDIR=
	@[ -x bin/poolkeeper ] || { echo 'install: there is no bin/poolkeeper: run "make build" first' >&2; exit 1; }
	install -D -m 755 bin/poolkeeper '$(DESTDIR)$(PREFIX)/bin/poolkeeper'
	bin/poolkeeper elements-install '$(DESTDIR)/opt/poolkeeper/elements'
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/poolkeeper' docs/reference/*.schema.json

# As any user, with any umask; what dpkg needs, nfpm writes itself.
.PHONY: deb
deb: ## Make a Debian package in dist
	@scripts/prerequisites deb
	@$(MAKE) build bin/nfpm
	VERSION='$(VERSION)' scripts/packaging/deb/build dist

.PHONY: release
release: ## Make what is published of a tagged commit, in dist/VERSION: the same bytes each time
	@scripts/prerequisites deb
	@$(MAKE) bin/nfpm
	scripts/packaging/release "dist/$$(scripts/version | sed 's/^v//')"

.PHONY: clean
clean: ## Remove what the build made
	rm -rf bin dist

##@ While changing something

# What a change most often breaks, in a minute. Which packages it tests is found out anew each
# time (scripts/units), unless UNITS names some; golangci-lint checks the format, too, and vets.
.PHONY: check
check: ## Check what a change most often breaks, in a minute: format, lint, tests without real parts
	@scripts/prerequisites lint
	@$(MAKE) bin/golangci-lint
	@failed=; \
	scripts/check || failed=1; \
	CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' bin/golangci-lint run || failed=1; \
	go test -short $(or $(UNITS),$$(scripts/units)) || failed=1; \
	[ -z "$$failed" ]

.PHONY: fmt
fmt: ## Format the Go files (gofumpt, gci)
	@scripts/prerequisites fmt
	@$(MAKE) bin/golangci-lint
	bin/golangci-lint fmt

# golangci-lint vets, too: what go vet asks is its linter govet. What it wants compiled is
# compiled as make build does, and so once for both.
.PHONY: lint
lint: ## Check Go, shell and the layout of the tree
	@scripts/prerequisites lint
	@$(MAKE) bin/golangci-lint
	@failed=; \
	scripts/check || failed=1; \
	CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' bin/golangci-lint run || failed=1; \
	[ -z "$$failed" ]

##@ Before it is merged

# Tests that start servers and guests mostly wait: those of the launcher use a quarter of a core.
# Packages are run in one and a half times as many processes as there are cores, and of each twice as
# many tests at a time. A race is told when it happens; the second that a program waits for others at
# its end (GORACE) is a minute over all.
.PHONY: test
test: ## Run every test, with -race, against a real ZooKeeper
	@scripts/prerequisites test
	@CGO_ENABLED=1 GORACE="atexit_sleep_ms=0 $${GORACE:-}" FORMAT=standard-quiet RERUN=$(RERUN) RERUN_MAX=5 scripts/gotest '$(PACKAGES)' \
		-race -timeout $(TEST_TIMEOUT) -p "$$((($$(nproc) * 3 + 1) / 2))" -parallel "$$(($$(nproc) * 2))" $(TESTFLAGS)

.PHONY: test-openstack
test-openstack: ## Test against a real OpenStack, started on loopback and stopped again
	@scripts/prerequisites openstack
	test/openstack/run

# The programs of the cluster are built once, for 9 to 16 minutes of processor time, and kept in
# ~/.cache/poolkeeper-test.
.PHONY: test-kubernetes
test-kubernetes: ## Test against a real Kubernetes API server, started on loopback and stopped again
	@scripts/prerequisites test
	test/kubernetes/run

.PHONY: test-aws
test-aws: ## Test against an Amazon that is checked against its published model, with its own clients
	@scripts/prerequisites aws
	test/aws/run

.PHONY: test-deb
test-deb: ## Make a release twice; install, upgrade and remove the package under systemd, in bare systems
	@scripts/prerequisites test package
	@$(MAKE) bin/nfpm
	go -C scripts/packaging test ./...
	test/deb/release
	test/deb/run
	test/deb/container

# As root each host gets a network of its own. The daemons are those of make build.
.PHONY: chaos
chaos: ## Harm servers, daemons, hosts, networks, clouds and records of a whole site; CHAOS=10m, SEED= repeats
	@scripts/prerequisites test
	go test -v -count 1 -timeout 3h -run TestChaos ./test/chaos -chaos $(CHAOS) $(if $(SEED),-seed $(SEED)) $(if $(KEEP),-keep)

# What make test does with smaller bounds.
.PHONY: model
model: ## Check the models of locks, claims and quotas exhaustively, with larger bounds (minutes, 8 GB)
	@scripts/prerequisites model
	MODEL=large go test -v -count 1 -timeout 2h -parallel 1 -run 'TestModels|TestPlantedDefects' ./test/model

# Each input that ever failed is in testdata/fuzz, and is run by make test, too.
.PHONY: fuzz
fuzz: ## Feed invented input to all that is parsed; FUZZTIME=30s each, JOBS=2, FUZZ='configs.FuzzLoad' takes some
	@scripts/prerequisites build
	JOBS='$(or $(JOBS),2)' scripts/fuzz '$(FUZZTIME)' $(FUZZ)

# What decides, and what keeps two from doing the same: test/mutants/targets.go lists it.
MUTANTS ?=
SHARD   ?= 1/1
.PHONY: mutants
mutants: ## Break the product on purpose, and tell what no test notices; MUTANTS=packages SHARD=1/1 AT=lock.go:12 FOR=4m FLOOR=85
	@scripts/prerequisites build
	go run ./test/mutants -shard $(SHARD) $(if $(AT),-at $(AT)) $(if $(FOR),-for $(FOR)) $(if $(FLOOR),-floor $(FLOOR)) $(if $(JOBS),-jobs $(JOBS)) $(MUTANTS)

# SEED alone is one run, and its timeline: the same each time, in wasip1. What failed tells its SEED, ORDER and ONLY.
.PHONY: sim
sim: ## Simulate worlds of faults; HOURS=1000 (agent-hours, of each WORLD) from SEED=1 on; SEED=n alone shows one
	@scripts/prerequisites build
ifeq ($(if $(HOURS),,$(SEED)),)
	go run ./test/sim/hunt -repeat $(if $(WORLD),-world $(WORLD))
	SIM=long go test -count 1 -timeout 30m -v -run 'Long$$' ./test/sim/replay
	go run ./test/sim/hunt -seed $(or $(SEED),1) -hours $(or $(HOURS),1000) $(if $(WORLD),-world $(WORLD))
else
	go run ./test/sim/hunt -seed $(SEED) -order $(or $(ORDER),0) $(if $(ONLY),-only $(ONLY)) $(if $(WORLD),-world $(WORLD))
endif

##@ How fast it is

# What was measured goes into this folder, as text and as charts; docs/scale has those of one run.
CHARTS ?= bin/charts
DRAW    = go run ./test/bench/charts -out '$(CHARTS)' '$(CHARTS)'/*.txt

.PHONY: bench
bench: ## Measure, beside the raw limits of the same run; draw charts, if BENCH and BENCH_PACKAGES leave nothing out
	@scripts/prerequisites test
	@mkdir -p '$(CHARTS)'
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout $(BENCH_TIMEOUT) \
		$(or $(BENCH_PACKAGES),$$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -r dirname | sort -u)) \
		$(if $(BENCH_PACKAGES)$(BENCH:.=),,| tee '$(CHARTS)/series.txt')
	$(if $(BENCH_PACKAGES)$(BENCH:.=),,$(DRAW))

# The series of sizes alone.
.PHONY: bench-scale
bench-scale: ## Measure how needs grow with a site, and draw charts; CHARTS=bin/charts
	@scripts/prerequisites test
	@mkdir -p '$(CHARTS)'
	go test -run '^$$' -bench . -benchtime 1x -timeout $(BENCH_TIMEOUT) ./test/bench/scale | tee '$(CHARTS)/series.txt'
	$(DRAW)

# What real servers are not measured with; counted in virtual time.
.PHONY: sim-scale
sim-scale: ## Count what launchers ask of ZooKeeper, to 100,000 nodes and to 200 launchers, simulated (minutes, 2 GiB)
	@scripts/prerequisites build
	@mkdir -p '$(CHARTS)'
	go test -v -count 1 -timeout 2h -run '^TestSeries$$' ./test/sim/scale -scale.series | tee '$(CHARTS)/simulated.txt'
	$(DRAW)

.PHONY: bench-openstack
bench-openstack: ## Measure against a real OpenStack, beside its own client and bare creations
	@scripts/prerequisites openstack
	BENCH=1 test/openstack/run

# The tools have their own requirements (scripts/tools/go.mod), and are built
# once: again only when a version there changes.
bin/golangci-lint: scripts/tools/go.mod scripts/tools/go.sum
	go -C scripts/tools build -trimpath -buildvcs=false -o '$(CURDIR)/$@' github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

bin/gotestsum: scripts/tools/go.mod scripts/tools/go.sum
	go -C scripts/tools build -trimpath -buildvcs=false -o '$(CURDIR)/$@' gotest.tools/gotestsum
	@touch $@

bin/nfpm: scripts/packaging/go.mod scripts/packaging/go.sum
	go -C scripts/packaging build -trimpath -buildvcs=false -o '$(CURDIR)/$@' github.com/goreleaser/nfpm/v2/cmd/nfpm
	@touch $@
