#!/usr/bin/env bash
# Run the tests that need no Spark on other Pythons. Arguments name interpreters; by default 3.10, 3.12 and 3.13.
# Each gets its own environment in build/pythons, with the packages of requirements.lock.
set -euo pipefail
cd "$(dirname "$0")/.."

environment() {
    local home=build/pythons/$1
    if ! cmp -s requirements.lock "$home/installed.lock"; then
        printf 'pythons: installing for %s\n' "$1" >&2
        "$1" -m venv --clear "$home"
        # Spark is built here, with the locked setuptools instead of whichever is newest today.
        "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
            --requirement <(awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' requirements.lock)
        "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
            --no-build-isolation --use-pep517 --requirement requirements.lock
        "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
            --no-deps --no-build-isolation --editable .
        cp requirements.lock "$home/installed.lock"
    fi
}

names=("$@")
[ $# != 0 ] || names=(python3.10 python3.12 python3.13)
status=0
for name in "${names[@]}"; do
    command -v "$name" > /dev/null || { printf 'pythons: %s was not found\n' "$name" >&2 && exit 1; }
    environment "$name"
    printf '== %s ==\n' "$("build/pythons/$name/bin/python" --version)"
    "build/pythons/$name/bin/python" -m pytest tests/unit tests/reference -m 'not long' --quiet \
        --numprocesses="${WORKERS:-2}" --dist=loadfile || status=1
done
exit $status
