# `make setup` needs only Python, pip and make; everything else depends on it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup test lint types layers unit lock bench clean

setup: $(VENV)/.done

$(VENV)/.done: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

test: lint types layers unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

# The tests of the house itself: links, names in prose, generated pages, file sizes. A part of `make unit`; seconds.
.PHONY: house-rules
house-rules: setup
	$(BIN)/pytest -n0 tests/architecture

unit: setup e2e-setup
	$(BIN)/pytest

# A browser and kubectl from Debian's packages, if they are missing, we are root, and apt answers; tried once. Never
# fails: tests without them are skipped, and say so.
.PHONY: e2e-setup
e2e-setup: setup
	@$(BIN)/python tests/e2e/machine_setup.py $(VENV)/.e2e-setup-tried

# Rewrites the locks from pyproject.toml: of all that developing needs, and, at the same versions, of what the image runs
# and is built with, and of what makes the docs site. They name packages and hashes, no registry.
PIP_COMPILE = $(BIN)/pip-compile --quiet --allow-unsafe --generate-hashes --strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host
lock: setup
	$(PIP_COMPILE) --extra dev --output-file requirements.lock pyproject.toml
	$(PIP_COMPILE) --extra re2 --constraint requirements.lock --output-file requirements-run.lock pyproject.toml
	$(PIP_COMPILE) --extra docs --constraint requirements.lock --output-file requirements-docs.lock pyproject.toml
	$(PIP_COMPILE) --constraint requirements.lock --build-deps-for wheel --only-build-deps \
		--output-file requirements-build.lock pyproject.toml

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build src/*.egg-info

# A whole cluster on this machine; `make up OPTIONS="--nodes 100"` for others than three nodes.
OPTIONS ?=
.PHONY: up docs
up: setup
	@$(BIN)/kubesched up $(OPTIONS)

# The families whose speed we promise; `make bench FAMILIES="basic gated"` runs others.
FAMILIES ?= basic node-affinity topology-spreading anti-affinity preferred-affinity preferred-anti-affinity \
	affinity preemption-async unschedulable mixed-churn overload overload-priorities daemonset \
	csi-volumes csi-volumes-late dra dra-shared dra-cel

# The whole loop under faults: `make chaos SEEDS=10000`. A seed that fails prints the shortest trace that still does.
SEEDS ?= 200
.PHONY: chaos
chaos: setup
	PYTHONPATH=tests $(BIN)/python -m harness.chaos --seeds $(SEEDS)

# The same with pod groups.
.PHONY: chaos-groups
chaos-groups: setup
	PYTHONPATH=tests $(BIN)/python -m harness.chaos --first 1000000 --seeds $(SEEDS)

# Random trials on one world, after each of which its state must have the hash it had: `make trials TRIALS=10000`.
TRIALS ?= 10000
.PHONY: trials
trials: setup
	PYTHONPATH=tests $(BIN)/python -m harness.trials --trials $(TRIALS)

# kill -9 of the embedded API server while it is written to: `make durability ROUNDS=1000`.
ROUNDS ?= 200
.PHONY: durability load
durability: setup
	PYTHONPATH=tests $(BIN)/python -m harness.apiserver_kills --rounds $(ROUNDS)

# Schedulers and API servers that stand still for 12 s, 40 s and 5 minutes: `make pauses PAUSES="--for 40"`.
PAUSES ?= --together
.PHONY: pauses
pauses: setup
	PYTHONPATH=tests $(BIN)/python -m harness.pauses $(PAUSES)

# The embedded API server under load: `make load LOAD="--nodes 500 --pods 2000"`.
LOAD ?=
load: setup
	PYTHONPATH=tests $(BIN)/python -m harness.apiserver_load $(LOAD)

# Live schedulers by turns on an API server that nobody else uses: `make bench-live LIVE="KUBECONFIG --nodes 500"`.
LIVE ?= --help
.PHONY: bench-live
bench-live: setup
	PYTHONPATH=tests $(BIN)/python -m harness.live_bench $(LIVE)

# How far kubesched agrees with a kube-scheduler on an API server that nobody else uses:
# `make agreement AGREEMENT="KUBECONFIG --scheduler '/path/to/kube-scheduler --kubeconfig {}'"`.
AGREEMENT ?= --help
.PHONY: agreement
agreement: setup
	PYTHONPATH=tests $(BIN)/python -m harness.agreement $(AGREEMENT)

# How smoothly the web page draws 5,000 nodes and 50,000 pods: `make page-frames FRAMES="--nodes 1000"`.
FRAMES ?=
.PHONY: page-frames
page-frames: setup
	PYTHONPATH=tests $(BIN)/python -m harness.page_frames $(FRAMES)

# A day of 100,000 bindings as a recording: its size, and what a replay takes: `make bench-replay DAY="--pods 10000"`.
DAY ?=
.PHONY: bench-replay
bench-replay: setup
	PYTHONPATH=tests $(BIN)/python -m harness.day_recording $(DAY)

# The pictures of the web page in docs/pictures, anew.
.PHONY: page-pictures
page-pictures: setup
	PYTHONPATH=tests $(BIN)/python tools/page_pictures.py

# Scenarios on a live cluster: `make test-cluster KUBECONFIG=~/.kube/config SCENARIOS="--nodes 100 --pods 500"`.
.PHONY: test-cluster
test-cluster: setup
	PYTHONPATH=tests $(BIN)/python -m harness.live_scenarios --kubeconfig $(KUBECONFIG) $(SCENARIOS)

# Pod groups beside a stock kube-scheduler: `make compare-groups KUBECONFIG=f KUBE_SCHEDULER=/usr/local/bin/kube-scheduler`.
.PHONY: compare-groups
compare-groups: setup
	PYTHONPATH=tests $(BIN)/python -m harness.group_comparison --kubeconfig $(KUBECONFIG) --kube-scheduler $(KUBE_SCHEDULER) $(OPTIONS)

# Kubernetes' own e2e suite on a fresh playground: `make conformance E2E_TEST=~/e2e.test SUITES="scheduling auth"`.
SUITES ?=
.PHONY: conformance
conformance: setup
	$(BIN)/python tools/conformance.py --e2e-test "$(E2E_TEST)" $(SUITES)

# The image, on a base image that is named by its digest; `make base-image` finds out what its tag means today.
IMAGE ?=
.PHONY: image base-image sbom
image:
	@deploy/build-image.sh "$(IMAGE)"

base-image:
	@deploy/build-image.sh --renew

# What kubesched is made of: components (CycloneDX), licences and their texts, in build/sbom.
sbom: setup
	$(BIN)/python tools/sbom.py

# Looks for new cases that break a property, and for inputs that break a parser: `make fuzz FUZZ_SECONDS=300`. What breaks a
# parser is kept in tests/fuzz/corpus, which `make test` tries again.
FUZZ_SECONDS ?= 20
FUZZ ?=
.PHONY: fuzz
fuzz: setup
	$(BIN)/python tests/fuzz/run_fuzz.py --seconds $(FUZZ_SECONDS) $(FUZZ)
	KUBESCHED_HYPOTHESIS=fuzz $(BIN)/pytest tests/property tests/unit/k8s/patterns

bench: setup
	$(BIN)/kubesched bench $(FAMILIES)
	$(BIN)/pytest -n0 benchmarks
	$(BIN)/python benchmarks/decide.py

# How long plain pods wait beside gangs: `make bench-beside-gangs ROUNDS=3`.
bench-beside-gangs: ROUNDS = 5
.PHONY: bench-beside-gangs
bench-beside-gangs: setup
	$(BIN)/python benchmarks/beside_gangs.py --rounds $(ROUNDS)

# How a simulation grows, up to 100,000 nodes and 1,000,000 pods: `make bench-scale SCALE="--sizes 1000x10000 5000x50000"`.
SCALE ?=
.PHONY: bench-scale
bench-scale: setup
	$(BIN)/python benchmarks/scale.py $(SCALE)

# The goals of planning beside what is reached: `make bench-planning ROWS=plan`. Minutes.
ROWS ?=
.PHONY: bench-planning
bench-planning: setup
	$(BIN)/python benchmarks/planning.py "$(ROWS)"

# Rewrites the generated pages of the reference, the picture of the house, and that of an answer.
docs: setup
	$(BIN)/python -m kubesched.scheduler.config.reference_page > docs/reference/configuration.md
	$(BIN)/python -m kubesched.scheduler.plugins.reference_page > docs/reference/plugins.md
	$(BIN)/python -m kubesched.framework.reference_page > docs/reference/plugin-api.md
	$(BIN)/python -m kubesched.scheduler.engine.metrics.exposition > docs/reference/metrics.md
	$(BIN)/python -m kubesched.older.engine.metrics.reference_page > docs/reference/older-metrics.md
	$(BIN)/python -m kubesched.live.options.reference_page > docs/reference/flags.md
	$(BIN)/python -m kubesched.live.logs.reference_page > docs/reference/logs.md
	$(BIN)/python -m kubesched.planning.report_schemas > docs/reference/reports.md
	$(BIN)/python -m kubesched.planning.report_schemas schemas > docs/reference/report-schemas.json
	$(BIN)/python tools/library_page.py
	$(BIN)/python tools/architecture_picture.py
	$(BIN)/python tools/explain_picture.py

# Writes what the tutorial's commands print today into its lessons, and takes its pictures: `make tutorial LESSONS="04 05"`.
LESSONS ?=
.PHONY: tutorial
tutorial: setup
	PYTHONPATH=tests $(BIN)/python -m harness.tutorial $(LESSONS)

# The docs site, in build/site. A link that leads nowhere fails. `make site-serve` shows it on this machine.
SITE_PORT ?= 8000
.PHONY: site site-serve
site: setup $(VENV)/.site
	$(BIN)/python tools/site_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

site-serve: site
	$(BIN)/python -m http.server --directory build/site --bind 127.0.0.1 $(SITE_PORT)

$(VENV)/.site: requirements-docs.lock $(VENV)/.done
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@

# The hot modules compiled by mypyc, beside a copy of the source in build/compiled; and the tests that they must pass as the
# source does.
COMPILED := build/compiled
COMPILED_TESTS ?= tests/unit/test_compiled.py tests/test_vectors.py tests/test_older_vectors.py tests/property tests/unit/scheduler tests/unit/simulator tests/unit/planning
.PHONY: compiled test-compiled
compiled: setup
	rm -rf $(COMPILED)
	mkdir -p $(COMPILED)
	cp -r src setup.py pyproject.toml README.md LICENSE NOTICE $(COMPILED)
	cd $(COMPILED) && KUBESCHED_COMPILE=1 $(CURDIR)/$(BIN)/python setup.py --quiet build_ext --inplace

test-compiled: compiled
	PYTHONPATH=$(CURDIR)/$(COMPILED)/src:tests $(BIN)/pytest -p harness.compiled_parts $(COMPILED_TESTS)
	PYTHONPATH=$(CURDIR)/$(COMPILED)/src:tests $(BIN)/python -m harness.chaos --seeds $(SEEDS)

# The package as others install it, in build/dist: the source, a wheel for every Python, and one with compiled modules for this
# Python and machine, which pip prefers where it fits.
.PHONY: dist
dist: setup
	$(BIN)/python -m build --no-isolation --outdir build/dist
	KUBESCHED_COMPILE=1 $(BIN)/python -m build --no-isolation --wheel --outdir build/dist
