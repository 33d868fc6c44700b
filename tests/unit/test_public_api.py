"""Every public name has a docstring with its arguments, result, errors and an example that runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import routing
from tests.public_api import PublicName, build_folder, faults, public_names, run_example
from tests.unit.test_prose import begins_with_a_verb

NAMES = list(public_names())
WITHOUT_SPARK = [public for public in NAMES if not public.needs_spark]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("examples")
    build_folder(folder)
    return folder


@pytest.mark.parametrize("public", NAMES, ids=lambda public: public.name)
def test_a_docstring_has_all_sections(public: PublicName) -> None:
    assert faults(public) == []
    assert begins_with_a_verb(public.docstring)


@pytest.mark.parametrize("public", WITHOUT_SPARK, ids=lambda public: public.name)
def test_an_example_prints_what_it_shows(
    public: PublicName, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert run_example(public) == ""


def test_most_examples_need_no_session() -> None:
    assert len(WITHOUT_SPARK) > len(NAMES) // 2


def sample(count: int, *, limit: int = 3) -> int:
    """Count something.

    Args:
        count: how many.
        limit: at most so many.

    Returns:
        The count.

    Raises:
        ValueError: it is wrong.
        ContractError: it is not allowed.

    Example:
        >>> 1 + 1
        2
    """
    return min(count, limit)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        pytest.param("", "", None, id="as it is"),
        pytest.param("    limit: at most so many.\n", "", "Args", id="parameter missing"),
        pytest.param("limit: at", "limits: at", "Args", id="parameter misspelt"),
        pytest.param("    count: how many.\n", "    count: how many.\n    more: no.\n", "Args", id="too many"),
        pytest.param("Returns:\n    The count.\n\n", "", "Returns is missing", id="no result"),
        pytest.param("ValueError", "ValuError", "ValuError is no exception", id="unknown exception"),
        pytest.param("ValueError", "len", "len is no exception", id="no exception"),
        pytest.param("    >>> 1 + 1\n    2", "    None.", "no example", id="example without code"),
        pytest.param("Example:\n    >>> 1 + 1\n    2", "", "no example", id="no example"),
        pytest.param("Raises:", "Fails:", None, id="no errors"),
    ],
)
def test_missing_docstring_sections(
    old: str, new: str, fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = PublicName("sample", sample)
    monkeypatch.setattr(sample, "__doc__", public.docstring.replace(old, new) if old else public.docstring)
    missing = faults(public)
    assert (missing == []) if fault is None else (fault in " ".join(missing))


def test_an_inherited_docstring_is_not_used() -> None:
    class Base:
        """Hold nothing."""

    class Derived(Base):
        pass

    assert PublicName("Derived", Derived).docstring == ""


def test_a_wrong_example_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    public = PublicName("sample", sample)
    assert run_example(public) == ""
    monkeypatch.setattr(sample, "__doc__", public.docstring.replace("    2", "    3"))
    assert "Expected:\n    3\nGot:\n    2" in run_example(public)


def test_completion_shows_the_public_names_and_no_others() -> None:
    """The names are those of `dir` in a new process, which notebooks use for completion."""
    program = (
        "import sys, routing\n"
        "from rlcompleter import Completer\n"
        "shown = [name for name in dir(routing) if not name.startswith('_')]\n"
        "assert shown == sorted(routing.__all__) and len(shown) > 40, shown\n"
        "assert not {'pyspark', 'pyarrow'} & set(sys.modules)\n"
        "assert 'pictures' in shown and 'altair' not in sys.modules\n"
        "texts = Completer({'routing': routing}).attr_matches('routing.resol')\n"
        "assert any('resolve_local' in text for text in texts), texts\n"
        "from routing import *\n"
        "assert resolve is routing.resolve and Outcome is routing.Outcome\n"
        "assert 'altair' not in sys.modules\n"
        "assert [name for name in pictures.__all__ if not callable(getattr(pictures, name))] == []\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match="module 'routing' has no attribute 'resolv', did you mean 'resolve'"):
        routing.resolv  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'routing' has no attribute 'xxxxxx'$"):
        routing.xxxxxx  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'routing'"):
        from routing import nothing  # type: ignore[attr-defined]  # noqa: F401
