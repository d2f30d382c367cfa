# One word for everything. Needs python3 (3.11 or newer) and make; the first target that runs
# anything makes .venv, the next ones find it there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# Compiled modules are kept, also where the shell says no: else each process that a test starts, and
# each run of the tests, compiles all of them again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help help-all environment native demo test test-all laws test-pages test-clients test-lowest check check-ruff check-mypy check-sql check-native docs pinned site freeze refreeze bench fuzz soak faults mutants deep clean

help:
	@echo 'make environment  .venv with the package and the tools'
	@echo 'make native       the compiled reader, where cargo is; without it SQL reads all traces'
	@echo 'make demo         a simulated training job: ingested, analyzed, explained'
	@echo 'make check        ruff, mypy --strict, the rules of the SQL library, the compiled reader'
	@echo 'make test         the test suite; without tests that are marked slow, which state a reason'
	@echo 'make test-all     slow tests and browser tests as well'
	@echo 'make pinned       after an intended change of numbers: write what each analysis answers'
	@echo 'make docs         write the generated parts of docs/'
	@echo 'make help-all     the other targets'

help-all: help
	@echo
	@echo 'make laws         every recorded job is changed in known ways, and all answers must follow (hours)'
	@echo 'make test-pages   notebooks run again, the site, explorer and open, in Chromium'
	@echo 'make test-clients shell, SQLAlchemy, Node.js, Superset, Evidence on a store'
	@echo 'make test-lowest  demo, commands and tests with the lowest versions that pyproject.toml states'
	@echo 'make site         the documentation as a site, with pictures, for a browser without a network'
	@echo 'make freeze       lock the analyses of the release that CHANGELOG.md dates'
	@echo 'make refreeze     lock macros that changed under them without changing a pinned answer'
	@echo 'make bench        against the commit before, HolisticTraceAnalysis and parsers; fails where slower'
	@echo 'make fuzz         broken traces and side files at random for FUZZ_SECONDS (60)'
	@echo 'make soak         four writers, eight readers, kills and repairs on one store for SOAK_SECONDS (1800)'
	@echo 'make faults       each file operation and request of each writer goes wrong, in four ways (hours; WRITERS="tag publish")'
	@echo 'make mutants      changes the SQL in every small way: a test must find each (FILES=... SAMPLE=0.02 SEED=1)'
	@echo 'make deep         the properties, each with fifty times as many examples'
	@echo 'make clean        remove the environment and what was generated'

# --group needs pip 25.1; the pip that Python brings along is often older.
$(READY): pyproject.toml
	@echo '== environment: $(VENV)'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hta_sql needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	@touch $@

environment: $(READY)

# Where cargo is: what it compiled of this source already it does not compile again.
native: $(READY)
	@$(BIN)/python hatch_build.py

demo: $(READY)
	@echo '== demo: traces and store in hta_sql_demo'
	$(BIN)/hta-sql demo

# One more than there are cores: tests also wait, for processes, locks and pages.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS := $(shell expr $(CORES) + 1)

# loadfile: a file's tests share the stores that they ingest.
test: native
	@echo '== tests'
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

test-all: native
	@echo '== all tests'
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m 'not clients'

# A process per core, each for every CORES-th job. What is not changed since the last run is not run again.
laws: native
	@echo '== laws: results in .hta_sql/laws'
	@seq $(CORES) | xargs -P $(CORES) -I '{}' $(BIN)/python -m tests.laws.run --shard '{}/$(CORES)'

# What people see and what takes a minute: it is not part of test, and runs before a change is taken.
# Without Chromium: make test-pages PAGES='slow and not browser'
PAGES ?= slow or browser

test-pages: native
	@echo '== notebooks, documentation, explorer'
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m '$(PAGES)' tests/test_notebooks.py tests/test_site.py tests/explorer tests/overlay/test_open.py tests/test_report_browser.py tests/test_report_payloads.py tests/test_chart_words.py

test-clients: $(READY)
	@echo '== clients, each in an environment of its own'
	$(BIN)/python -m pytest -q tests/clients -m clients

# Of the lowest Python, too: later ones have no wheels of such versions.
LOWEST_PYTHON ?= python3.11
LOWEST := .hta_sql/lowest

# With and without extras: their dependencies raise versions of ours. The tools of the tests are today's.
test-lowest:
	@echo '== lowest versions: $(LOWEST)'
	@$(LOWEST_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "make test-lowest needs Python 3.11: LOWEST_PYTHON=python3.11")'
	@rm -rf $(LOWEST)
	$(LOWEST_PYTHON) -m venv $(LOWEST)/tools
	$(LOWEST)/tools/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/tools/bin/uv venv --quiet --python $(LOWEST_PYTHON) $(LOWEST)/plain
	$(LOWEST)/tools/bin/uv pip install --quiet --python $(LOWEST)/plain --resolution lowest-direct .
	$(LOWEST)/plain/bin/hta-sql demo --ranks 2 --no-open -o $(LOWEST)/demo
	$(LOWEST)/plain/bin/hta-sql list $(LOWEST)/demo/demo.store
	$(LOWEST)/plain/bin/hta-sql sql $(LOWEST)/demo/demo.store 'FROM steps' --format csv
	$(LOWEST)/plain/bin/hta-sql run $(LOWEST)/demo/demo.store step_accounting --chart $(LOWEST)/demo/steps.png
	$(LOWEST)/tools/bin/uv venv --quiet --python $(LOWEST_PYTHON) $(LOWEST)/extras
	$(LOWEST)/tools/bin/uv pip install --quiet --python $(LOWEST)/extras --resolution lowest-direct --editable '.[all]'
	$(LOWEST)/tools/bin/uv pip install --quiet --python $(LOWEST)/extras pytest pytest-xdist hypothesis ijson polars openpyxl 'moto[server]'
	$(LOWEST)/extras/bin/python -m pytest -q -n $(WORKERS) --dist loadfile tests/cli tests/agents tests/discovery tests/explorer tests/test_api.py tests/test_charts.py tests/safety/test_dask.py tests/safety/test_object_storage.py

check: $(READY)
	@$(MAKE) --no-print-directory --jobs=3 check-ruff check-mypy check-sql check-native

check-ruff: $(READY)
	@echo '== ruff'
	$(BIN)/ruff check
	$(BIN)/ruff format --check hta_sql tests benchmarks docs/generate .github

check-mypy: $(READY)
	@echo '== mypy'
	$(BIN)/mypy

# Where cargo is.
check-native:
	@if command -v cargo >/dev/null; then \
		echo '== the compiled reader'; cd native && export MAKEFLAGS= && cargo fmt --check && cargo clippy -q --all-targets -- -D warnings && cargo test -q --lib; \
	fi

check-sql: $(READY)
	@echo '== the SQL library'
	$(BIN)/python -m tests.sql_rules.run

docs: $(READY)
	@echo '== docs'
	$(BIN)/python -m docs.generate.stored_columns sql/stored_columns.json
	$(BIN)/python -m docs.generate.commands docs/cli.md
	$(BIN)/python -m docs.generate.schema docs/schema.md
	$(BIN)/python -m docs.generate.analyses docs/analyses.md
	$(BIN)/python -m docs.generate.notebooks docs/notebooks
	$(BIN)/python -m docs.generate.superset docs/superset/hta_sql_dashboard.zip
	$(BIN)/python -m docs.generate.screenshots docs/pictures

# After a change that means to change numbers: its message says which and why.
pinned: $(READY)
	$(BIN)/python -m tests.pinned.answers

SITE ?= .hta_sql/site

site: $(READY)
	@echo '== site: $(SITE)/index.html'
	$(BIN)/python -m docs.generate.site $(SITE)

freeze: $(READY)
	@echo '== sql/analyses/frozen.csv'
	$(BIN)/python -m tests.sql_rules.run --freeze

# Macros under released analyses that changed no pinned answer; the reason stands in CHANGELOG.md.
refreeze: $(READY)
	@echo '== sql/analyses/frozen.csv'
	$(BIN)/python -m tests.sql_rules.run --refreeze

# Options of the paired run: BENCH='--before v0.1.0 --repeat 9'
BENCH ?=

bench: native
	@echo '== benchmarks: results in benchmarks/work'
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/calls.py
	$(BIN)/python benchmarks/paired.py $(BENCH)

FUZZ_SECONDS ?= 60
FUZZ_SEED ?=

fuzz: native
	@echo '== fuzz: $(FUZZ_SECONDS) seconds'
	$(BIN)/python -m tests.fuzz.run $(FUZZ_SECONDS) $(FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.artifacts $(FUZZ_SECONDS) $(FUZZ_SEED)

SOAK_SECONDS ?= 1800
SOAK_SEED ?= 1

soak: $(READY)
	@echo '== soak: $(SOAK_SECONDS) seconds'
	@rm -rf .hta_sql/soak
	$(BIN)/python -m tests.safety.soak .hta_sql/soak $(SOAK_SECONDS) $(SOAK_SEED)

WRITERS ?=

faults: $(READY)
	@echo '== faults of file operations'
	@rm -rf .hta_sql/faults .hta_sql/requests
	$(BIN)/python -m tests.safety.fault_rounds .hta_sql/faults $(WRITERS)
	$(BIN)/python -m tests.safety.request_rounds .hta_sql/requests $(WRITERS)

FILES ?=
# A share of the mutants, drawn by SEED: SAMPLE=0.02 SEED=1
SAMPLE ?= 1
SEED ?= 1

mutants: $(READY)
	@echo '== mutants of sql/'
	$(BIN)/python -m tests.mutants.run --sample $(SAMPLE) --seed $(SEED) $(FILES)

deep: $(READY)
	@echo '== properties, with many new examples'
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -q -n auto $$(grep -rl 'import examples\|, examples' tests --include='test_*.py')

clean:
	@echo '== clean'
	rm -rf $(VENV) .hta_sql build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find hta_sql tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
