# Everything that is done with this tree. Needs Go and git; the rest is built
# from Go modules, whose versions are pinned in hack/tools and hack/testbin.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

GO ?= go
TOOL := $(GO) tool -modfile=hack/tools/go.mod
# golangci-lint with kube-api-linter in it.
LINT := $(TOOL) golangci-lint-kube-api-linter
# How long each fuzz test runs in fuzz-short.
FUZZTIME ?= 20s
# Packages that the race detector looks at: those that decide, and those that run at once.
RACE ?= ./pkg/mesh/... ./pkg/observe/... ./pkg/snapshot/... ./pkg/plan/... ./pkg/diff/... ./pkg/conditions/... \
	./pkg/registry/... ./pkg/router/... ./pkg/fleet/... ./pkg/apply/... ./controllers/...

# Modules of their own that hold tests.
TEST_MODULES := $(wildcard hack/istiocheck hack/istiotranslate hack/benchfilter/module)

# Tests with traffic. They have the machine to themselves.
MESH_TESTS := /e2e/

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {print "\n" substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build

.PHONY: build
build: ## Build bin/portolan: the manager and the command line in one.
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/portolan ./cmd/portolan

.PHONY: generate
generate: ## Write the deep copies of api/ (zz_generated.deepcopy.go).
	$(TOOL) controller-gen object paths=./api/...

.PHONY: manifests
manifests: ## Write the CRDs of api/ (config/crd/bases).
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases

.PHONY: fmt
fmt: ## Format all Go files and sort their imports.
	$(LINT) fmt

.PHONY: tidy
tidy: ## Bring go.mod and go.sum of all modules in order, but for hack/istiolines, which builds nothing.
	$(GO) mod tidy
	cd hack/tools && $(GO) mod tidy
	cd hack/testbin && $(GO) mod tidy -e
	cd hack/testmesh && $(GO) mod tidy
	cd hack/benchfilter/module && $(GO) mod tidy
	cd e2e/kind && $(GO) mod tidy
	cd e2e/kind/coredns && $(GO) mod tidy

##@ Check

.PHONY: test
test: testbin ## Run every test, on real API servers too, and with traffic where the machine allows. The first run builds for 10 minutes.
	@for dir in $(TEST_MODULES); do (cd $$dir && for mod in *.mod; do $(GO) test -modfile=$$mod ./... || exit 1; done); done
	@cd e2e/kind && $(GO) test ./...
	@failed=0; $(GO) test -timeout 20m $$($(GO) list ./... | grep -v $(MESH_TESTS)) || failed=1; \
	$(GO) test -p 1 -timeout 30m .$(MESH_TESTS)... || failed=1; exit $$failed

.PHONY: test-mesh
test-mesh: testbin testmesh ## Send requests through real proxies while clusters die, at length. Needs Linux and root.
	PORTOLAN_MESH=long $(GO) test -count=1 -p 1 -v -timeout 90m .$(MESH_TESTS)...

.PHONY: testbin
testbin: ## Build kube-apiserver, etcd and kubectl for the tests, unless they are in the user's cache.
	@$(GO) run ./hack/testservers

.PHONY: testmesh
testmesh: ## Build istiod, Envoy and more for the tests with traffic, unless they are in the user's cache.
	@$(GO) run ./hack/testservers mesh

.PHONY: test-race
test-race: testbin ## Run tests under the race detector, which needs a C compiler.
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $(RACE)

.PHONY: fuzz-short
fuzz-short: ## Run each fuzz test for FUZZTIME (20s).
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: lint
lint: ## Run all linters of .golangci.yml.
	$(LINT) config verify
	$(LINT) run ./...
	cd e2e/kind && $(GO) tool -modfile=../../hack/tools/go.mod golangci-lint-kube-api-linter run ./...

.PHONY: verify-generated
verify-generated: ## Fail if generate or manifests would change a file.
	@hack/verify-generated.sh

.PHONY: bench
bench: testbin ## Measure the operator on real API servers; the last line is JSON.
	$(GO) run ./hack/bench

.PHONY: bench-mesh
bench-mesh: testbin ## Measure istiod and a proxy with Portolan's objects and with Istio's own way; needs Linux and root.
	$(GO) run ./hack/benchmesh

.PHONY: bench-router
bench-router: ## Measure the lookup service on one processor while tables change; needs Linux. The last line is JSON.
	$(GO) run ./hack/benchrouter

.PHONY: bench-filter
bench-filter: testmesh ## Measure what a RoutingPolicy's filters cost a proxy; the last line is JSON. Needs Linux and two cores.
	$(GO) run ./hack/benchfilter

##@ On kind

# The fleet of kind clusters, a module of its own.
E2E := cd e2e/kind && $(GO)
# Specs that make e2e runs, as ginkgo's label filter. Empty means all.
LABELS ?=

.PHONY: e2e
e2e: ## Try Portolan as users do, in a hub and two members of kind with Istio. LABELS=failover: a part. Leaves nothing behind.
	export E2E_RUN=1; $(E2E) test ./suite -count=1 -timeout 150m -v -ginkgo.v -ginkgo.label-filter='$(LABELS)'

.PHONY: e2e-short
e2e-short: ## The quick start and failover alone, in two clusters, one of which is the hub too.
	@E2E_SMALL=1 $(MAKE) --no-print-directory e2e LABELS=short

.PHONY: e2e-up
e2e-up: ## Make the fleet of kind clusters and keep it. E2E_SMALL=1: of two clusters. E2E_IMAGES=pull or build: where images come from.
	@$(E2E) run . up

.PHONY: e2e-down
e2e-down: ## Remove that fleet.
	@$(E2E) run . down

.PHONY: e2e-deps
e2e-deps: ## Install by apt what the fleet needs of the machine, as root.
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$(command -v dockerd >/dev/null || echo docker.io) \
		iptables iproute2 debootstrap gcc libc6-dev libseccomp-dev pkg-config python3 python3-pip

##@ Try

.PHONY: demo
demo: testbin ## Run a hub and three members on this machine, with samples, and show what they get. MESH=1: with traffic.
	$(GO) run ./hack/demo $(if $(MESH),mesh,up)

.PHONY: demo-down
demo-down: ## End the demo and remove what it kept.
	$(GO) run ./hack/demo down
