"""The configuration: all faults at once, similar keys, --set and kinds of values."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from routing.config import (
    Config,
    ConfigError,
    TableLocation,
    is_uri,
    load,
    parse_time,
    read_duration,
    size_in_bytes,
)
from routing.delta.spark_tables import read_text

UTC = timezone.utc
WHOLE: dict[str, Any] = {
    "tables": {key: f"data/{key}" for key in ("routes", "databases", "services", "instances", "messages")},
    "output": {
        key: f"out/{key}" for key in ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
    },
}


def loaded(values: Any, *overrides: str, file: str = "/conf/job.yaml") -> Config:
    return load(file, overrides, text=yaml.safe_dump(values))


def faults(values: Any, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(values, *overrides)
    assert caught.value.exit_code == 2
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_null_byte_in_a_location_is_refused() -> None:
    values = {**WHOLE, "tables": {**WHOLE["tables"], "routes": "data/ro\0utes"}}
    assert "tables.routes holds a null byte" in faults(values)


def test_variables_of_spark_in_a_location_are_refused() -> None:
    """Spark puts settings and the environment in the place of ``${…}`` before it parses, quoted or not."""
    values = {**WHOLE, "tables": {**WHOLE["tables"], "routes": "data/${env:HOME}", "databases": "a.${spark.x}"}}
    text = faults(values)
    assert "tables.routes holds ${, which" in text
    assert "tables.databases holds ${, which" in text
    dollars = {**WHOLE, "tables": {**WHOLE["tables"], "routes": "/data/$routes{}"}}
    assert loaded(dollars).tables["routes"] == TableLocation("/data/$routes{}")


def test_missing_keys_have_defaults() -> None:
    config = loaded(WHOLE)
    assert config.tables["routes"] == TableLocation("/conf/data/routes")
    assert set(config.tables) == set(WHOLE["tables"])
    assert (config.resolve.mode, config.resolve.as_of) == ("full", None)
    assert (config.resolve.dialog_hash, config.resolve.broadcast_limit) == ("builtin", "512MB")
    assert config.missing_route_namespace.endswith("/BrokerConfigurationNotice/MissingRoute")
    assert config.spark == {}


def test_all_faults_are_reported_at_once() -> None:
    values = {
        "tables": {**WHOLE["tables"], "mesages": "x", "routes": 5, "services": None},
        "output": {key: path for key, path in WHOLE["output"].items() if key != "runs"},
        "resolve": {
            "mode": "fast",
            "as_of": "yesterday",
            "broadcast_limit": "much",
            "dialog_hash": 7,
            "duplicates_within": "soon",
        },
        "dynamic_routing": "on",
        "spark": {"spark.a": {"b": 1}},
        "resolv": {},
    }
    text = faults(values, "nonsense", "tables.routes.deep=1", "resolve.as_of=[")
    for fault in (
        "--set takes KEY=VALUE, not 'nonsense'",
        "unknown key 'tables.mesages', did you mean 'tables.messages'?",
        "unknown key 'resolv', did you mean 'resolve'?",
        "tables.routes must be a path or a table name",
        "--set tables.routes.deep: 'routes' holds no keys",
        "--set resolve.as_of: '[' is not valid YAML",
        "tables.services is missing",
        "output.runs is missing",
        "resolve.mode must be full, incremental or window, not 'fast'",
        "resolve.as_of: 'yesterday' is not an ISO 8601 time",
        "resolve.broadcast_limit: 'much' is not a size",
        "resolve.duplicates_within: 'soon' is not a duration such as 7 days or 12 hours",
        "resolve.dialog_hash must be text, not '7'",
        "dynamic_routing must be a mapping",
        "spark.spark.a must be one value",
    ):
        assert fault in text
    assert "has 15 faults" in text


def test_an_unknown_key_far_from_all_lists_the_known_ones() -> None:
    text = faults({**WHOLE, "zzz": 1})
    assert "unknown key 'zzz', known are dynamic_routing, lineage, lint, output, resolve, spark, tables" in text


def test_the_text_of_many_faults_is_bounded() -> None:
    text = faults({**WHOLE, **{f"key{n}": "x" * 1000 for n in range(1000)}})
    assert "has 1000 faults" in text
    assert text.count("unknown key") == 20
    assert "and 980 more" in text
    assert len(faults({**WHOLE, "k" * 100_000: 1})) < 1000


@pytest.mark.parametrize("text", ["a: [", "- a\n- b", "just words", "a: 1\n b: 2", "\tx: 1"])
def test_broken_yaml_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"'job.yaml'.* is not valid YAML") as caught:
        load("job.yaml", text=text)
    assert "\n" not in str(caught.value)


def test_an_empty_file_lacks_required_keys() -> None:
    with pytest.raises(ConfigError, match=r"has 9 faults: tables.routes is missing"):
        load("job.yaml", text="")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'/no/such.yaml' cannot be read: No such file"):
        load("/no/such.yaml")
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory"):
        load(str(tmp_path))


_TEXT = "tables:\n  # Läden\n  routes: data/routes\n"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (_TEXT.encode("cp1252"), 2),
        # What Notepad and PowerShell 5.1 call Unicode; and the same without its mark.
        (_TEXT.encode("utf-16"), 1),
        (_TEXT.encode("utf-16-le"), 2),
        ("tables:\n  routes: a\n".encode("utf-16-be"), 1),
        (b"tables:\n  routes: data\0routes\n", 2),
    ],
    ids=["Windows-1252", "UTF-16 with mark", "UTF-16 LE", "UTF-16 BE", "a zero byte"],
)
def test_another_encoding_suggests_utf_8(content: bytes, line: int, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(str(file))
    assert str(caught.value) == (
        f"the configuration '{file}', line {line}, is not UTF-8 text (save the file as UTF-8)"
    )


def test_another_encoding_behind_a_uri() -> None:
    """Spark replaces undecodable bytes without an error."""
    read = SimpleNamespace(collect=lambda: [("tables:\n  # L\ufffdden\n",)])
    spark: Any = SimpleNamespace(read=SimpleNamespace(text=lambda uri, wholetext: read))
    with pytest.raises(ConfigError, match=r"'s3a://b/job.yaml', line 2, is not UTF-8 text \(save the file"):
        read_text(spark, "s3a://b/job.yaml")


def test_utf_8_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(yaml.safe_dump(WHOLE).encode("utf-8-sig"))
    assert load(str(file)).file == str(file)


def test_overrides_replace_keys_of_the_file() -> None:
    config = loaded(
        WHOLE,
        "tables.dialogs=data/dialogs",
        "resolve.as_of=2026-01-05T12:00:00+02:00",
        "resolve.broadcast_limit=1KB",
        "resolve.dialog_hash=udf",
        "resolve.duplicates_within=7 days",
        "output.runs=shop.audit.runs",
        "spark.spark.sql.shuffle.partitions=2",
        "spark.spark.sql.ansi.enabled=true",
        "dynamic_routing.missing_route_namespace=urn:a=b",
    )
    assert config.tables["dialogs"] == TableLocation("/conf/data/dialogs")
    assert config.resolve.as_of == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert (config.resolve.broadcast_limit, config.resolve.dialog_hash) == ("1KB", "udf")
    assert read_duration(str(config.resolve.duplicates_within)) == timedelta(days=7)
    assert config.output["runs"] == TableLocation("shop.audit.runs", is_name=True)
    assert config.spark == {"spark.sql.shuffle.partitions": "2", "spark.sql.ansi.enabled": "true"}
    assert config.missing_route_namespace == "urn:a=b"


def test_the_last_override_wins_and_null_removes_a_key() -> None:
    config = loaded({**WHOLE, "resolve": {"as_of": "2026-01-05"}}, "resolve.as_of=2027-01-01", "resolve.as_of=")
    assert config.resolve.as_of is None
    assert "tables.routes is missing" in faults(WHOLE, "tables.routes=null")


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        ("data/routes", "/conf", TableLocation("/conf/data/routes")),
        ("/abs/routes", "/conf", TableLocation("/abs/routes")),
        ("routes", "/conf", TableLocation("/conf/routes")),
        ("./a.b", "/conf", TableLocation("/conf/a.b")),
        ("../data//routes/", "/etc/conf", TableLocation("/etc/data/routes")),
        ("/a/../b/./routes", "/conf", TableLocation("/b/routes")),
        ("a..b", "/conf", TableLocation("/conf/a..b")),
        ("a.b.c.d", "/conf", TableLocation("/conf/a.b.c.d")),
        ("shop.routes", "/conf", TableLocation("shop.routes", is_name=True)),
        ("main.shop.routes", "/conf", TableLocation("main.shop.routes", is_name=True)),
        ("s3a://bucket/x.y", "/conf", TableLocation("s3a://bucket/x.y")),
        ("abfss://c@a.dfs.core.windows.net/x", "/conf", TableLocation("abfss://c@a.dfs.core.windows.net/x")),
        ("dbfs:/x/y", "/conf", TableLocation("dbfs:/x/y")),
        ("dbfs:/x/../y//z/", "/conf", TableLocation("dbfs:/x/../y//z/")),
        ("file:/x/y", "/conf", TableLocation("file:/x/y")),
        ("hdfs:/x.y", "/conf", TableLocation("hdfs:/x.y")),
        ("/Volumes/main/shop/in/x", "/conf", TableLocation("/Volumes/main/shop/in/x")),
        # A colon alone makes no URI.
        ("data:routes", "/conf", TableLocation("/conf/data:routes")),
        ("routes", "dbfs:/conf", TableLocation("dbfs:/conf/routes")),
        ("data/routes", "s3a://bucket/conf", TableLocation("s3a://bucket/conf/data/routes")),
        ("shop.routes", "s3a://bucket/conf", TableLocation("shop.routes", is_name=True)),
    ],
)
def test_locations(text: str, folder: str, expected: TableLocation) -> None:
    assert TableLocation.parse(text, folder) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("s3://b/x", True), ("abfss://c@a.dfs.core.windows.net/x", True), ("dbfs:/conf/job.yaml", True)),
        *(("file:/x", True), ("hdfs:/x", True), ("hdfs:///x", True)),
        *(("/Volumes/a/b/c/job.yaml", False), ("job.yaml", False), ("my:job.yaml", False), ("C:/job.yaml", False)),
        *(("C:\\job.yaml", False), ("", False)),
    ],
)
def test_uris_are_recognized(text: str, expected: bool) -> None:
    assert is_uri(text) is expected


def test_paths_are_relative_to_the_file_not_to_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "job.yaml").write_text(yaml.safe_dump(WHOLE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load("conf/job.yaml").tables["routes"].text == str(tmp_path / "conf" / "data" / "routes")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-05T10:00:00Z", datetime(2026, 1, 5, 10, tzinfo=UTC)),
        ("2026-01-05T10:00:00z", datetime(2026, 1, 5, 10, tzinfo=UTC)),
        (" 2026-01-05 10:00:00 ", datetime(2026, 1, 5, 10, tzinfo=UTC)),
        ("2026-01-05T10:00:00.123456+05:30", datetime(2026, 1, 5, 4, 30, 0, 123456, tzinfo=UTC)),
        ("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC)),
        (date(2026, 1, 5), datetime(2026, 1, 5, tzinfo=UTC)),
        (datetime(2026, 1, 5, 10), datetime(2026, 1, 5, 10, tzinfo=UTC)),
        (datetime(2026, 1, 5, 10, tzinfo=timezone(timedelta(hours=-5))), datetime(2026, 1, 5, 15, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_utc(value: object, expected: datetime) -> None:
    assert parse_time(value) == expected
    assert parse_time(value).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "value", ["", "noon", "2026-13-01", "2026-01-05T25:00:00", 5, True, 1.5, "0001-01-01T00:00:00+10:00"]
)
def test_invalid_times_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not an? (ISO 8601 )?time"):
        parse_time(value)


@pytest.mark.parametrize(
    "written", ["2026-01-05T10:00:00Z", '"2026-01-05T10:00:00Z"', "2026-01-05T12:00:00+02:00"]
)
def test_times_in_yaml_with_and_without_quotes(written: str) -> None:
    text = yaml.safe_dump(WHOLE) + f"resolve:\n  as_of: {written}\n"
    assert load("job.yaml", text=text).resolve.as_of == datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1B", 1),
        ("1024", 1024),
        ("512MB", 512 << 20),
        ("1 g", 1 << 30),
        ("2KiB", 2048),
        ("1tb", 1 << 40),
    ],
)
def test_sizes_are_read_in_bytes(text: str, expected: int) -> None:
    assert size_in_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "MB", "-1", "1.5GB", "1XB", "one"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a size such as 512MB"):
        size_in_bytes(text)


def test_a_size_may_be_a_number() -> None:
    assert size_in_bytes(loaded({**WHOLE, "resolve": {"broadcast_limit": 1024}}).resolve.broadcast_limit) == 1024
    # Nothing is broadcast: not the same as no limit given.
    assert size_in_bytes(loaded({**WHOLE, "resolve": {"broadcast_limit": 0}}).resolve.broadcast_limit) == 0


def test_settings_as_json_can_be_read_again() -> None:
    config = loaded(WHOLE, "resolve.as_of=2026-01-05T10:00:00Z", "spark.spark.x=1", "output.runs=a.b")
    text = config.as_json()
    assert "\n" not in text
    again = load("/elsewhere/runs.yaml", text=text)
    assert (again.tables, again.output, again.resolve) == (config.tables, config.output, config.resolve)
    assert (again.spark, again.missing_route_namespace) == (config.spark, config.missing_route_namespace)


def test_tables_of_imports_are_not_inputs_of_resolve() -> None:
    kept = {"imports": "data/imports", "observed_routing": "broker.observed"}
    config = loaded({**WHOLE, "tables": {**WHOLE["tables"], **kept}})
    assert set(config.tables) == set(WHOLE["tables"])
    assert config.import_tables == {
        "imports": TableLocation("/conf/data/imports"),
        "observed_routing": TableLocation("broker.observed", is_name=True),
    }
    assert '"imports": "/conf/data/imports"' in config.as_json()


def test_a_table_of_imports_needs_its_own_location() -> None:
    text = faults(
        {**WHOLE, "tables": {**WHOLE["tables"], "imports": "data/routes", "observed_routing": "out/runs"}}
    )
    assert "tables.imports has the location of tables.routes" in text
    assert "output.runs has the location of tables.observed_routing" in text


def test_incremental_mode_needs_pending_messages() -> None:
    incremental = {**WHOLE, "resolve": {"mode": "incremental"}}
    assert "output.pending_messages is missing, which resolve.mode: incremental needs" in faults(incremental)
    config = loaded(incremental, "output.pending_messages=out/pending")
    assert config.output["pending_messages"] == TableLocation("/conf/out/pending")
    assert "pending_messages" not in loaded(WHOLE).output


def test_outputs_of_other_commands_are_not_outputs_of_resolve() -> None:
    assert loaded(WHOLE).other_outputs == {}
    names = {"route_candidates": "candidates", "message_paths": "paths", "reconciliation": "told"}
    config = loaded(WHOLE, *(f"output.{key}=out/{name}" for key, name in names.items()))
    assert config.other_outputs == {
        "route_candidates": TableLocation("/conf/out/candidates"),
        "message_paths": TableLocation("/conf/out/paths"),
        "reconciliation": TableLocation("/conf/out/told"),
    }
    assert set(config.output) == set(WHOLE["output"])
    assert load("/elsewhere/runs.yaml", text=config.as_json()).other_outputs == config.other_outputs


@pytest.mark.parametrize(
    ("place", "other_key"),
    [("data/messages", "tables.messages"), ("out/runs", "output.runs"), ("data/imports", "tables.imports")],
)
def test_message_paths_needs_its_own_location(place: str, other_key: str) -> None:
    values = {**WHOLE, "tables": {**WHOLE["tables"], "imports": "data/imports"}}
    assert f"output.message_paths has the location of {other_key}" in faults(
        values, f"output.message_paths={place}"
    )


def test_as_of_is_refused_in_incremental_mode() -> None:
    text = faults(
        {**WHOLE, "resolve": {"mode": "incremental", "as_of": "2026-01-05"}}, "output.pending_messages=out/pending"
    )
    assert "has 1 fault: resolve.as_of cannot be used with resolve.mode: incremental (" in text


def test_the_view_of_a_catalog_is_named_among_outputs_of_a_catalog() -> None:
    named = {key: f"main.broker.{key}" for key in WHOLE["output"]}
    config = loaded({**WHOLE, "output": {**named, "current_routes": "main.views.mine"}})
    assert config.view == TableLocation("main.views.mine", is_name=True)
    assert "current_routes" not in {**config.output, **config.other_outputs}
    assert json.loads(config.as_json())["output"]["current_routes"] == "main.views.mine"
    by_default = loaded({**WHOLE, "output": {**named, "current_routes": None}})
    assert (by_default.view, "current_routes" in by_default.as_json()) == (None, False)


@pytest.mark.parametrize(
    ("written", "columns"),
    [
        (["enqueue_time", "instance_name"], ("enqueue_time", "instance_name")),
        ("enqueue_time, instance_name", ("enqueue_time", "instance_name")),
        ("decided_at", ("decided_at",)),
        (None, ()),
    ],
)
def test_columns_that_cluster_routes(written: Any, columns: tuple[str, ...]) -> None:
    config = loaded({**WHOLE, "output": {**WHOLE["output"], "cluster_by": written}})
    assert config.cluster_by == columns
    assert json.loads(config.as_json())["output"].get("cluster_by", []) == [*columns]
    assert set(config.output) == set(loaded(WHOLE).output)


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        (7, "output.cluster_by must be a list of columns, not '7'"),
        ([["run_id"]], "output.cluster_by must be a list of columns"),
        ("enqueued", "output.cluster_by: 'enqueued' is no column of resolved_routes that can be clustered"),
        ("is_initiator", "output.cluster_by: 'is_initiator' is no column"),
        ("alternative_routes", "output.cluster_by: 'alternative_routes' is no column"),
        ([], "output.cluster_by needs one to 4 different columns"),
        (["run_id", "run_id"], "output.cluster_by needs one to 4 different columns"),
        ("run_id,attempt,reason,outcome,address", "output.cluster_by needs one to 4 different columns"),
    ],
)
def test_columns_that_cannot_cluster_routes(written: Any, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded({**WHOLE, "output": {**WHOLE["output"], "cluster_by": written}})
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        ({"current_routes": "views"}, "output.current_routes must be the name of a view in a catalog"),
        ({"current_routes": "a.views"}, "output.current_routes needs an output.resolved_routes that is a name"),
        ({"current_routes": "a.runs", "runs": "a.runs"}, "output.current_routes has the location of output.runs"),
    ],
    ids=["a path", "outputs by path", "a table of the job"],
)
def test_invalid_names_of_the_view_are_refused(outputs: dict[str, str], fault: str) -> None:
    assert fault in faults({**WHOLE, "output": {**WHOLE["output"], **outputs}})
