"""Break single rules in a copy of the project, and check that the tests fail.

``python -m tests.mutants [--fast] [NAME …]`` has exit status 0 if a test failed for every mutant. It has 1 if none
failed for a mutant, or if the tests fail without any. ``--fast`` tries only the mutants of the rule book in plain
Python, which take a minute together without Spark. The others share one session to save its start.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant

PROJECT = Path(__file__).resolve().parents[2]
COPIED = ("pyproject.toml", "routing", "tests", "docs")
RANDOM = {"SBROUTE_RANDOM_ESTATES": "160", "SBROUTE_RANDOM_MESSAGES": "40", "SBROUTE_RANDOM_BATCHES": "1"}


class FirstFailure:
    """Stores the first test of which an assertion failed, or else the first that failed."""

    def __init__(self) -> None:
        self.test = ""
        self.is_assertion = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Told by pytest of every phase of every test."""
        if self.is_assertion or not report.failed:
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        self.is_assertion = report.when == "call" and str(getattr(crash, "message", "")).startswith(
            ("AssertionError", "assert ", "Failed: DID NOT RAISE")
        )
        if self.is_assertion or not self.test:
            self.test = report.nodeid.rpartition("/")[2]


def run_tests(copy: Path, selection: Sequence[str]) -> tuple[FirstFailure, int, str]:
    """Run the selection on the copy, and return the first failure, pytest's exit status and its output."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("routing", "tests")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    if "pyspark" in sys.modules:
        _forget_what_is_cached()
    first, printed = FirstFailure(), io.StringIO()
    # The mutant may crash some tests before another one sees its wrong answer.
    options = ["--maxfail=5", "-q", "--tb=short", "-p", "no:cacheprovider", "--rootdir", str(copy), *selection]
    with contextlib.redirect_stdout(printed):
        status = int(pytest.main(options, plugins=[first]))
    tested = Path(str(sys.modules["routing"].__file__)).resolve()
    assert tested.is_relative_to(copy), f"{tested} was tested instead of the copy"
    return first, status, printed.getvalue()


def judged(mutant: Mutant, copy: Path) -> tuple[str, str]:
    """Return the result of a mutant (seen, survived or broken) and the first failed test."""
    file = copy / mutant.file
    right = file.read_text(encoding="utf-8")
    file.write_text(mutant.applied(copy), encoding="utf-8")
    try:
        first, status, _ = run_tests(copy, mutant.tests)
    finally:
        file.write_text(right, encoding="utf-8")
    if status == pytest.ExitCode.OK:
        return "SURVIVED", ""
    # A crash is not the answer that was asked for: the mutant must be wrong code that runs.
    return ("seen" if first.is_assertion else "BROKEN"), first.test


def say(text: str) -> None:
    """A line of the table, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _forget_what_is_cached() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.catalog.clearCache()


def main(arguments: Sequence[str]) -> int:
    """Run the named mutants, or all, or all fast ones."""
    names = {name for name in arguments if name != "--fast"}
    unknown = names - {mutant.name for mutant in MUTANTS}
    if unknown:
        say(f"no mutant is named {', '.join(sorted(unknown))}")
        return 2
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if "--fast" in arguments:
        chosen = [mutant for mutant in chosen if mutant.is_fast]
    with _copy() as copy, _session(any(mutant.needs_spark for mutant in chosen)):
        return _table(chosen, copy)


@contextlib.contextmanager
def _copy() -> Iterator[Path]:
    """Copy the tested files, from which Python then imports."""
    with tempfile.TemporaryDirectory(prefix="sbroute-mutants-") as folder:
        copy = Path(folder).resolve()
        for name in COPIED:
            source = PROJECT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        os.environ.update(RANDOM)
        sys.path[:] = [str(copy), *(p for p in sys.path if Path(p).resolve() != PROJECT)]
        os.chdir(copy)
        try:
            yield copy
        finally:
            os.chdir(PROJECT)


@contextlib.contextmanager
def _session(is_needed: bool) -> Iterator[None]:
    """Where tests start a Spark session, keep it for all of them."""
    if not is_needed:
        yield
        return
    from pyspark.sql import SparkSession

    try:
        with mock.patch.object(SparkSession, "stop"):
            yield
    finally:
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()


def _table(mutants: Sequence[Mutant], copy: Path) -> int:
    started = time.monotonic()
    # Each selection once, in the order of the list.
    selected = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    _, status, printed = run_tests(copy, tuple(selected))
    if status != pytest.ExitCode.OK:
        say(f"{printed}\nthe tests are red without any mutant")
        return 1
    # What is right stays compiled. A mutant never is: another, as long and of the same second, would look like it.
    sys.dont_write_bytecode = True
    say(f"{'mutant':<28} {'result':<9} {'seconds':>7}  first red test")
    say(f"{'(none)':<28} {'green':<9} {time.monotonic() - started:>7.0f}")
    missed = []
    for mutant in mutants:
        started = time.monotonic()
        result, test = judged(mutant, copy)
        say(f"{mutant.name:<28} {result:<9} {time.monotonic() - started:>7.0f}  {test[:100]}")
        if result != "seen":
            missed.append(mutant)
    for mutant in missed:
        say(f"not seen: {mutant.name}: {mutant.rule}")
    say(f"{len(mutants) - len(missed)} of {len(mutants)} mutants seen")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
