#!/usr/bin/env bash
# Make or complete the virtual environment in .venv: what requirements.lock holds, and this project.
# PYTHON names the interpreter to make it with (python3 by default).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
recent_enough='import sys; sys.exit(sys.version_info < (3, 10))'

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

make_environment() {
    command -v "$python" > /dev/null || fail "$python was not found: install Python 3.10 or later" \
        "(on Debian and Ubuntu: apt-get install python3 python3-venv)"
    "$python" -c "$recent_enough" || fail "Python 3.10 or later is needed and $python is $("$python" -V 2>&1):" \
        "name a later one, as in: make setup PYTHON=python3.12"
    # Debian splits ensurepip off; the module venv is there without it and does not work.
    "$python" -c 'import ensurepip, venv' 2> /dev/null || fail "$python has no working venv module:" \
        "install it (on Debian and Ubuntu: apt-get install python3-venv) and try again"
    "$python" -m venv --clear .venv
}

install() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input "$@" ||
        fail "the packages could not be installed: see pip's message above, then try again"
}

if ! .venv/bin/python -c "import pip; $recent_enough" 2> /dev/null; then make_environment; fi

echo 'setup: installing into .venv; the first time about 600 MB are fetched, which takes some minutes' >&2
# Spark and this project are built here, with the locked setuptools instead of whichever is newest today.
install --require-hashes --requirement <(awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' requirements.lock)
install --require-hashes --no-build-isolation --use-pep517 --requirement requirements.lock
install --no-deps --no-build-isolation --editable .
