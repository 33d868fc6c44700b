.DEFAULT_GOAL := help
.PHONY: docs docs-serve owner other-python help setup java chromium demo demo-import test test-project test-spark test-long test-rules reconcile-proof test-matrix test-pythons test-connect test-cluster test-s3 test-browser docs-output pictures screenshot notebooks test-bundle test-airflow test-crash mutants bench bench-check bench-incremental bench-cluster floor check format lock wheel newcomer clean

BIN := .venv/bin
READY := .venv/.ready
# Whatever of these exists; each is held to the same rules.
SOURCES := $(wildcard routing jobs tests benchmarks deploy)
# Spark starts the Java that JAVA_HOME names, whichever is first on the PATH.
WITH_JAVA = JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup  ## route example messages by Spark and show where each goes (ARGS='--out DIR')
	@$(WITH_JAVA) $(BIN)/sbroute demo --engine spark $(ARGS)

demo-import: setup  ## check example exports and scripts: why a queue is stuck; then import and resolve them
	@$(BIN)/python conf/examples/demo.py

# Two processes: planning small queries keeps one core busy. Hundreds of tests start a process that imports the package:
# its bytecode is kept, also where the environment says otherwise.
PYTEST = $(WITH_JAVA) env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --numprocesses=$(or $(WORKERS),2) --dist=loadfile --no-loadscope-reorder

test: setup  ## run the tests without Spark and most of its core tests, two processes at a time (ARGS='-k name' WORKERS=0)
	@$(PYTEST) -m 'not long and not matrix and not spark' --durations=15 $(ARGS)

test-spark: setup  ## run the other tests of Spark
	@$(WITH_JAVA) $(BIN)/python -m pytest -m 'spark and not long' --durations=15 $(ARGS)

test-project: setup  ## run the tests of pages, notebooks, benchmarks, deployment files and mutants
	@$(WITH_JAVA) $(BIN)/python -m pytest tests/project $(ARGS)

test-long: setup  ## run the long tests: many runs in a row, interrupted, restored, read at the same time
	@$(PYTEST) -m long --durations=5 $(ARGS)

test-rules: setup  ## compare a million random messages with the tests' own resolver (a long run)
	@$(WITH_JAVA) SBROUTE_RANDOM_ESTATES=500 SBROUTE_RANDOM_MESSAGES=100 SBROUTE_RANDOM_BATCHES=$(or $(BATCHES),20) \
		$(BIN)/python -m pytest tests/spark/test_random_estates.py --durations=3 $(ARGS)
	@SBROUTE_EXAMPLES=all $(BIN)/python -m pytest tests/unit -m hypothesis --durations=3 $(ARGS)

reconcile-proof: setup  ## check that reconcile names each fault of 100 simulated days (ARGS='--estates 20 --seed 1')
	@$(BIN)/python -m tests.simulated.proof $(ARGS)

test-matrix: setup  ## run the core of the tests on Spark 3.5, 4.0 and 4.2 as well (ARGS=3.5.9; a long run)
	@$(WITH_JAVA) scripts/matrix.sh $(ARGS)

test-pythons: setup  ## run the tests without Spark on other Pythons (ARGS='python3.12 python3.13'; a long run)
	@$(WITH_JAVA) scripts/pythons.sh $(ARGS)

test-connect: setup  ## run the core of the tests on Spark Connect
	@$(WITH_JAVA) SBROUTE_TEST_REMOTE='local[1]' SBROUTE_RANDOM_ESTATES=50 $(BIN)/python -m pytest -m 'core and not long' --durations=5 $(ARGS)

test-cluster: setup  ## start a standalone cluster, submit the job to it, and kill a worker
	@$(WITH_JAVA) $(BIN)/python -m pytest tests/platforms/test_cluster.py --durations=5 $(ARGS)

test-s3: setup build/moto/.ready  ## resolve from and to an S3-compatible store
	@$(WITH_JAVA) $(BIN)/python -m pytest tests/platforms/test_s3.py --durations=5 $(ARGS)

build/moto/.ready: tests/platforms/moto.lock
	@$(BIN)/python -m venv --clear build/moto
	@build/moto/bin/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --requirement $<
	@touch $@

test-browser: setup  ## open the report page in headless Chromium and test it
	@$(BIN)/python -m pytest tests/platforms/test_looks.py tests/platforms/test_browser.py \
		tests/platforms/test_browser_demo.py --durations=5 $(ARGS)

docs: setup  ## build the site of the documentation into build/docs, with strict links
	@rm -rf build/docs
	@$(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning --keep-going docs build/docs
	@echo "build/docs/index.html"

docs-serve: docs  ## show the site on this machine (PORT=8000)
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs $(or $(PORT),8000)

docs-output: setup  ## update shown outputs in pages, the pages of errors and the comments of columns
	@$(BIN)/python -m tests.column_comments
	@$(BIN)/python -m tests.error_pages
	@$(BIN)/python -m tests.shown_output

pictures: setup  ## update the diagrams and terminal pictures in pages
	@$(BIN)/python -m tests.diagrams
	@$(BIN)/python -m tests.terminal_pictures

screenshot: setup  ## update the README's picture of the report page
	@$(BIN)/python -m tests.platforms.screenshot

notebooks: setup  ## run the notebooks over the demo and store their outputs
	@$(WITH_JAVA) $(BIN)/python -m tests.notebook_outputs

test-bundle: setup  ## validate the Databricks bundle (needs the Databricks CLI, no workspace)
	@$(BIN)/python -m pytest tests/platforms/test_bundle.py $(ARGS)

test-airflow: setup build/airflow/.ready  ## import the example DAG in Airflow and run its operator
	@AIRFLOW_HOME="$(CURDIR)/build/airflow/home" AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__LOGGING__LOGGING_LEVEL=ERROR \
		build/airflow/bin/python tests/platforms/import_dag.py

build/airflow/.ready: tests/platforms/airflow.lock
	@$(BIN)/python -m venv --clear build/airflow
	@build/airflow/bin/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --requirement $<
	@touch $@

test-crash: setup  ## kill and race runs, fill the disk, corrupt logs (SHORT=1 for a short form)
	@$(WITH_JAVA) SBROUTE_CRASH=$(if $(SHORT),short,all) \
		$(BIN)/python -m pytest tests/crash --durations=10 $(ARGS)

mutants: setup  ## break each rule once in a copy and expect a failing test (ARGS=--fast for rules only, ARGS=NAME)
	@$(WITH_JAVA) $(BIN)/python -m tests.mutants $(ARGS)

bench: .venv/.bench  ## measure a warm session beside a copy and plain PySpark (ARGS='--messages 1000000')
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.bench $(ARGS)

bench-check: .venv/.bench  ## compare the ratios of a short measurement with the recorded baseline
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.check $(ARGS)

bench-incremental: .venv/.bench  ## measure incremental runs over 30 million messages against their limits (ARGS=--by-name)
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.incremental --gate $(ARGS)

bench-cluster: .venv/.bench  ## measure 3 million routes and keys on clusters of one and two workers (ARGS='--keys 10000000')
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.cluster --gate $(ARGS)
	@$(if $(ARGS),,$(WITH_JAVA) $(BIN)/python -m benchmarks.cluster --gate --keys 1000000 --instances 1 --workers 2)

floor: .venv/.bench  ## measure whole commands beside bare processes (ARGS='--gate --messages 10000000' fails over a limit)
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.floor $(ARGS)

# What only measurements need joins .venv when it is asked for; its pins for the rest are those of .venv.
.venv/.bench: $(READY) benchmarks/bench.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
		--requirement benchmarks/bench.lock
	@touch $@

check: setup  ## run the linters and the type checker
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

format: setup  ## format the source
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

setup: $(READY)  ## install everything into .venv (PYTHON=python3.12)

# If PYTHON names another interpreter than that of .venv, the environment is created again.
$(READY): requirements.lock pyproject.toml scripts/setup.sh $(if $(PYTHON),$(if $(shell PYTHON="$(PYTHON)" scripts/setup.sh --compare),other-python))
	@PYTHON="$(PYTHON)" scripts/setup.sh
	@touch $@

other-python:

java:  ## find Java 17 or 21, or install it, and print its home
	@scripts/java.sh

chromium:  ## find Chromium and its driver, or install them, and print their paths
	@scripts/chromium.sh

lock: setup  ## update requirements.lock (ARGS=--upgrade)
	@scripts/lock.sh $(ARGS)

owner:  ## fill in the account of the code host in all addresses (OWNER=name)
	@python3 scripts/owner.py "$(OWNER)"

wheel: setup  ## build the wheel into dist/
	@rm -rf build/lib build/bdist.* dist
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

newcomer:  ## follow the README in a fresh clone with the system's Python (ARGS=--quick without `make test`; a long run)
	@/usr/bin/python3 scripts/newcomer.py $(ARGS)

clean:  ## remove everything that was built except .venv
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@rm -rf spark-warehouse metastore_db derby.log artifacts sbroute-demo
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
