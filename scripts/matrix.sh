#!/usr/bin/env bash
# Run the core of the tests on other pairs of Spark and Delta (tests/pairs), with ANSI mode off and on.
# Arguments name Spark versions (all pairs by default); ANSI="false" or ANSI="true" runs one mode only.
set -euo pipefail
cd "$(dirname "$0")/.."

# The environment of a pair holds the pair alone and takes everything else from .venv, behind itself.
environment() {
    local home=build/pairs/$1 lock=tests/pairs/spark-$1.lock
    if ! cmp -s "$lock" "$home/installed.lock"; then
        printf 'matrix: installing Spark %s\n' "$1" >&2
        .venv/bin/python -m venv --clear --without-pip "$home"
        "$home/bin/python" - "$PWD/.venv" <<'PYTHON'
import pathlib, sysconfig, sys
own = pathlib.Path(sysconfig.get_path("purelib"))
shared = pathlib.Path(sysconfig.get_path("purelib", vars={"base": sys.argv[1], "platbase": sys.argv[1]}))
(own / "shared.pth").write_text(f"import site; site.addsitedir({str(shared)!r})\n")
PYTHON
        "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --ignore-installed \
            --require-hashes --no-build-isolation --use-pep517 --requirement "$lock"
        cp "$lock" "$home/installed.lock"
    fi
}

names=("$@")
if [ $# = 0 ]; then
    for file in tests/pairs/*.lock; do
        file=${file##*/spark-}
        names+=("${file%.lock}")
    done
fi
status=0
for name in "${names[@]}"; do
    environment "$name"
    for ansi in ${ANSI:-false true}; do
        printf '== Spark %s, ANSI mode %s ==\n' "$name" "$ansi"
        # Deprecations of this pair's libraries are not ours to mend.
        SBROUTE_TEST_SPARK=$name SBROUTE_TEST_ANSI=$ansi SBROUTE_RANDOM_ESTATES=${ESTATES:-50} \
            "build/pairs/$name/bin/python" -m pytest -m 'core and not long' --override-ini=filterwarnings= --quiet --durations=5 || status=1
    done
done
exit $status
