"""Public functions answer arguments of a wrong kind by an error that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import date, datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import routing
from routing.arguments import ArgumentFault
from routing.errors import InputError
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import columns_of
from tests.estate_rows import small_estate
from tests.frames import arrow
from tests.public_api import NAMES

WRONG: tuple[Any, ...] = (
    *(None, True, 5, 1.5, "no such thing", b"x", Path("x"), date(2026, 1, 5)),
    *(datetime(2026, 1, 5), datetime(2026, 1, 5, tzinfo=timezone.utc), [], [1], (), {}, {"rutes": 1}, {1: 2}),
    *({"routes": []}, object(), print),
)
# What results and errors are made of is not asked for, and neither are the members of vocabularies.
MADE_BY_THE_PACKAGE = {
    *("Config", "Configuration", "Diff", "MessageFlow", "RankedCandidates", "Reconciliation", "Report"),
    *("Resolution", "Run", "ContractError", "RoutingError", "StorageError", "MatchingStep", "Outcome", "Reason"),
}
CHECKED = [name for name in NAMES if name not in MADE_BY_THE_PACKAGE]


class SparkSession:
    """A session by its class's name, with nothing in it."""


class Report:
    """A report likewise."""


class Diff:
    """A result likewise."""


def _value_for(name: str, annotation: str) -> Any:
    """Return a value of the right kind for a parameter."""
    if "SparkSession" in annotation:
        return SparkSession()
    if "Mapping[str, Table]" in annotation or annotation == "Against":
        return arrow(small_estate())
    if annotation in ("Report", "CommandResult"):
        return Report() if annotation == "Report" else Diff()
    if annotation == "Config":
        return routing.load_config("job.yaml", text=JOB)
    if annotation == "Question":
        return routing.StoredMessage("m3")
    if annotation == "MessageFilter":
        return routing.ask()
    if annotation == "datetime":
        return datetime(2026, 1, 5)
    return {"str": "x", "Sequence[str]": ["x"], "Mapping[str, int]": {"routes": 0}}.get(annotation)


JOB = """
tables: {routes: r, databases: d, services: s, instances: i, messages: m}
output: {resolved_routes: o, new_route_requests: n, rejected_messages: j, runs: u}
"""


@pytest.mark.parametrize("name", CHECKED)
def test_wrong_kinds_of_arguments(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each parameter in turn gets every wrong value, the others right ones."""
    monkeypatch.chdir(tmp_path)
    function = getattr(routing, name)
    parameters = inspect.signature(function).parameters
    assert parameters
    refused = 0
    for wrong_name, parameter in parameters.items():
        for wrong in WRONG:
            arguments = {
                one: _value_for(one, str(other.annotation))
                for one, other in parameters.items()
                if other.default is other.empty and other.kind is not other.VAR_POSITIONAL
            }
            if not _is_wrong(wrong, str(parameter.annotation)):
                continue
            call = partial(function, **{**arguments, wrong_name: wrong})
            if parameter.kind is parameter.VAR_POSITIONAL:
                call = partial(function, *arguments.values(), wrong)
            with pytest.raises((routing.RoutingError, TypeError)) as caught:
                call()
            text = str(caught.value)
            assert wrong_name in text or "table" in text, text
            assert len(text) < 500
            refused += 1
    assert refused > len(parameters)


def _is_wrong(value: Any, annotation: str) -> bool:
    """Return whether a value is none that a parameter takes."""
    kinds = annotation.replace("Against", "Config | Mapping[str, Table] | datetime").split(" | ")
    if isinstance(value, Mapping):
        right: tuple[object, ...] = ({"rutes": 1}, {}) if "Mapping[str, int]" in kinds else ()
        if "Mapping[str, object]" in kinds:
            right = ({"rutes": 1}, {}, {"routes": []})
        return value not in (*right, *([{}] if annotation in ("Mapping[str, str]", "Against") else ()))
    is_right = {
        "None": value is None,
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "str": isinstance(value, str),
        "datetime": isinstance(value, datetime),
    }
    if any(is_right.get(kind, False) for kind in kinds):
        return False
    if any(kind.startswith("Sequence[str]") for kind in kinds):
        return value not in ([], ())
    return not (callable(value) and any(kind.startswith("Callable") for kind in kinds))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        pytest.param(
            lambda: routing.resolve(small_estate(), SparkSession()),  # type: ignore[arg-type]
            "argument spark is a dict, not a SparkSession (routing.spark_session starts one)",
            id="swapped",
        ),
        pytest.param(
            lambda: routing.resolve(SparkSession(), Path("tables")),  # type: ignore[arg-type]
            "argument tables is PosixPath 'tables', not tables by their keys (such as {\"routes\": routes, …})",
            id="path",
        ),
        pytest.param(
            lambda: routing.resolve(SparkSession(), {}, as_of="2026-01-05"),  # type: ignore[arg-type]
            "argument as_of is str '2026-01-05', not a datetime or None"
            " (such as datetime(2026, 1, 5, 13), in UTC)",
            id="text for a time",
        ),
        pytest.param(
            lambda: routing.explain("job.yaml", routing.StoredMessage("m3")),  # type: ignore[arg-type]
            "argument tables is str 'job.yaml', not tables by their keys or a configuration"
            ' (such as {"routes": routes, …}; routing.load_config reads one from a file)',
            id="file for a configuration",
        ),
    ],
)
def test_texts_of_errors(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ArgumentFault) as caught:
        call()
    assert str(caught.value) == text
    # Either name catches it.
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, routing.ContractError)


def test_no_time_of_pandas_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ArgumentFault, match="argument at is"):
        routing.StoredMessage("m3", at=pandas.NaT)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("rutes", "unknown key 'rutes', did you mean 'routes'?"),
        ("dialog", "unknown key 'dialog', did you mean 'dialogs'?"),
        ("Messages", "unknown key 'Messages', did you mean 'messages'?"),
    ],
)
def test_an_unknown_key_names_the_nearest(key: str, text: str) -> None:
    tables: Any = {**arrow(small_estate()), key: arrow(small_estate())["routes"]}
    for ask in (
        lambda: routing.explain(tables, routing.StoredMessage("m3")),
        lambda: routing.trace(tables, routing.StoredMessage("m3")),
        lambda: routing.diff(tables, datetime(2026, 1, 5)),
        lambda: routing.diff(arrow(small_estate()), {key: tables["routes"]}),
        lambda: routing.reconcile(tables),
        lambda: routing.report(tables),
        lambda: routing.list_messages(tables, routing.ask(), now=datetime(2026, 1, 5)),
        lambda: routing.resolve(SparkSession(), tables),  # type: ignore[arg-type]
        lambda: routing.candidates(SparkSession(), tables),  # type: ignore[arg-type]
        lambda: routing.trace_all(SparkSession(), tables),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError) as caught:
            ask()
        assert text in str(caught.value)


# Frames that Arrow reads.


class ArrowStream:
    """A frame of another library, in the types of Arrow that it uses: Polars has views, and dictionaries."""

    def __init__(self, rows: pyarrow.Table) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


def _in_types(rows: pyarrow.Table, text: pyarrow.DataType, unit: str) -> pyarrow.Table:
    kinds = []
    for field in rows.schema:
        kind = field.type
        if pyarrow.types.is_string(kind):
            kind = text
        elif pyarrow.types.is_timestamp(kind):
            kind = pyarrow.timestamp(unit, kind.tz)
        elif pyarrow.types.is_list(kind):
            kind = pyarrow.large_list(text)
        kinds.append(field.with_type(kind))
    return rows.cast(pyarrow.schema(kinds))


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize(
    "text",
    [pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())],
    ids=str,
)
def test_frames_that_arrow_reads(text: pyarrow.DataType, unit: str) -> None:
    tables = arrow(small_estate())
    for key in ("routes", "databases", "services", "instances", "route_requests"):
        rows = tables[key]
        if pyarrow.types.is_dictionary(text) and key == "instances":
            continue
        taken = take_tables({key: ArrowStream(_in_types(rows, text, unit))}, ())
        assert columns_of(taken[key], key) == columns_of(rows, key)


def test_frames_of_pandas() -> None:
    """pandas has texts as objects with None or NaN, numbers with gaps as floats, and times in nanoseconds."""
    pandas = pytest.importorskip("pandas")
    tables = arrow(small_estate())
    expected = {key: columns_of(tables[key], key) for key in ("routes", "databases", "instances")}
    routes = tables["routes"].to_pandas()
    routes["mirror_address"] = routes["mirror_address"].where(routes["mirror_address"].notna(), float("nan"))
    routes["valid_from"] = routes["valid_from"].astype("datetime64[ns, UTC]")
    databases = tables["databases"].to_pandas().astype({"database_id": "float64", "is_broker_enabled": object})
    taken = take_tables(
        {"routes": routes, "databases": databases, "instances": tables["instances"].to_pandas()}, ()
    )
    assert {key: columns_of(table, key) for key, table in taken.items()} == expected
    indexed = take_tables({"routes": routes.set_index("name")}, ())
    assert columns_of(indexed["routes"], "routes") == expected["routes"]
    databases.loc[0, "database_id"] = float("nan")
    taken = take_tables({"databases": databases}, ())
    assert columns_of(taken["databases"], "databases").values["database_id"][:2] == [None, 5]
    databases.loc[0, "database_id"] = 1.5
    with pytest.raises(InputError, match="column database_id has numbers that are no bigint"):
        take_tables({"databases": databases}, ())
    mixed = pandas.DataFrame({"name": ["a", 1]})
    with pytest.raises(InputError, match=r"table routes: Arrow cannot read a DataFrame: .* column name"):
        take_tables({"routes": mixed}, ())


def test_frames_answer_as_tables_do() -> None:
    pytest.importorskip("pandas")
    tables = arrow(small_estate())
    frames: Any = {key: table.to_pandas() for key, table in tables.items()}
    question = routing.StoredMessage("m3")
    assert routing.explain(frames, question).verdict == routing.explain(tables, question).verdict
