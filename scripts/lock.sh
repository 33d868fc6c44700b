#!/usr/bin/env bash
# Write requirements.lock anew from pyproject.toml, and the locks of the other pairs of Spark and Delta in
# tests/pairs, of the S3 server that a test starts, of Airflow, which imports the example DAG, and of what
# `make bench` adds: one file for every Python from 3.10 on, with hashes.
# Pins that still fit are kept; arguments go to uv (--upgrade, --upgrade-package NAME).
set -euo pipefail
cd "$(dirname "$0")/.."

# uv is a tool of this script alone, so it lives apart from the environment that it locks.
tool=build/lock
[ -x $tool/bin/uv ] || { .venv/bin/python -m venv $tool && $tool/bin/python -m pip install --quiet uv; }
compile() {
    $tool/bin/uv pip compile --universal --python-version 3.10 --generate-hashes \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet "$@"
}
compile pyproject.toml --extra dev --output-file requirements.lock "$@"
for file in tests/pairs/*.in tests/platforms/*.in; do compile "$file" --output-file "${file%.in}.lock" "$@"; done
# `make bench` adds to .venv what is missing there; pins of what is there must be the same.
compile pyproject.toml --extra local --extra bench --constraint requirements.lock \
    --output-file benchmarks/bench.lock "$@"
