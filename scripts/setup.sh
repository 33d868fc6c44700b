#!/usr/bin/env bash
# Create or complete the virtual environment in .venv: the packages of requirements.lock, and this project.
# PYTHON names the interpreter (python3 by default); an environment of another interpreter is created again.
# With --compare, print "other" if PYTHON is another interpreter than that of .venv, and do nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
recent_enough='import sys; sys.exit(sys.version_info < (3, 10))'
identity='import sys; print(sys.base_prefix, sys.version)'

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

# True if PYTHON names an interpreter other than that of .venv.
is_other() {
    [ -n "${PYTHON:-}" ] || return 1
    [ "$("$python" -c "$identity" 2> /dev/null)" != "$(.venv/bin/python -c "$identity" 2> /dev/null)" ]
}

if [ "${1:-}" = --compare ]; then
    if is_other; then echo other; fi
    exit
fi

make_environment() {
    command -v "$python" > /dev/null || fail "$python was not found: install Python 3.10 or later" \
        "(on Debian and Ubuntu: apt-get install python3 python3-venv)"
    "$python" -c "$recent_enough" || fail "Python 3.10 or later is needed and $python is $("$python" -V 2>&1):" \
        "name a later one, as in: make setup PYTHON=python3.12"
    # Debian packages ensurepip on its own; without it the module venv exists and does not work.
    "$python" -c 'import ensurepip, venv' 2> /dev/null || fail "$python has no working venv module:" \
        "install it (on Debian and Ubuntu: apt-get install python3-venv) and try again"
    say "creating .venv with $("$python" -V 2>&1)"
    "$python" -m venv --clear .venv
}

# Of pip's many lines, show those that take time: large downloads, and builds.
show_progress() {
    awk '/^ *Downloading .*[(][0-9.]+ [MG]B[)]/ {
            size = $(NF - 1); sub(/[(]/, "", size); unit = $NF; sub(/[)]/, "", unit)
            if (size + 0 >= 10 || unit == "GB") { print "setup:   downloading " $2 ", " size " " unit; fflush() }
        }
        /^ *Building wheel for .*started/ { print "setup:   building " $4; fflush() }' >&2
}

install() {
    .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off "$@" | show_progress ||
        fail "the packages could not be installed: see pip's message above, then try again"
}

if is_other || ! .venv/bin/python -c "import pip; $recent_enough" 2> /dev/null; then make_environment; fi

say "1 of 3: the build tools"
# Spark and this project are built here, with the locked setuptools instead of whichever is newest today.
install --require-hashes --requirement <(awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' requirements.lock)
say "2 of 3: $(grep -c '^[a-z]' requirements.lock) packages. The first time this downloads about 600 MB and takes some minutes"
install --require-hashes --no-build-isolation --use-pep517 --requirement requirements.lock
say "3 of 3: this project"
install --no-deps --no-build-isolation --editable .
say "done in $SECONDS s"
