#!/usr/bin/env bash
# Write requirements.lock anew from pyproject.toml: one file for every Python from 3.10 on, with hashes.
# Pins that still fit are kept; arguments go to uv (--upgrade, --upgrade-package NAME).
set -euo pipefail
cd "$(dirname "$0")/.."

# uv is a tool of this script alone, so it lives apart from the environment that it locks.
tool=build/lock
[ -x $tool/bin/uv ] || { .venv/bin/python -m venv $tool && $tool/bin/python -m pip install --quiet uv; }
$tool/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.10 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet --output-file requirements.lock "$@"
