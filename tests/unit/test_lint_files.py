"""``sbroute lint PATH…``: exports and scripts without tables. A missing export is never a fault."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.terms import BROKER_CONFIGURATION_SERVICE
from tests.exported import database, export, listening, route, whole_shop
from tests.exported_estates import FULL, SCRIPT, write_estates
from tests.without import SPARK, without

NOW = "2026-01-06T00:00:00Z"
ESTATES = int(os.environ.get("SBROUTE_RANDOM_EXPORTS", "15"))
SEED = int(os.environ.get("SBROUTE_RANDOM_SEED", "20260301"))
SCRIPT_TEXT = """USE Sales;
GO
CREATE ROUTE Far WITH SERVICE_NAME = '//far', ADDRESS = 'http://far:4022';
GO
CREATE ROUTE NoPort
    WITH SERVICE_NAME = '//x', ADDRESS = 'TCP://far.example';
GO
DROP ROUTE Unknown;
GO
CREATE ROUTE Bad WITH ADRESS = 'LOCAL';
CREATE ROUTE Never WITH ADDRESS = 'LOCAL';
GO
CREATE ROUTE Lacking WITH SERVICE_NAME = '//y';
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    assert cli.main(["lint", "--now", NOW, *arguments]) == status
    out, err = capsys.readouterr()
    return out, err


def linted(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(capsys, *arguments, "--format", "json", status=status)[0])
    return answer


def script(folder: Path, text: str = SCRIPT_TEXT, name: str = "change.sql") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_findings_of_a_script_name_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(script(tmp_path))
    done = linted(capsys, file, "--fail-on", "error", status=1)
    assert [(one["code"], one["file"], one["line"], one["object"]) for one in done["findings"]] == [
        ("SBR006", file, 3, None),
        ("SBR031", file, 5, "NoPort"),
        ("SBR042", file, 10, None),
        ("SBR042", file, 13, None),
    ]
    assert [one["error_number"] for one in done["findings"]] == [9744, None, 102, None]
    # The route may be there, for all that the script says.
    assert any(note.startswith(f"{file}, line 8: DROP ROUTE 'Unknown': it is unknown") for note in done["notes"])
    assert done["not_taken"] == [
        f"{file}, line 11: CREATE ROUTE 'Never': it does not run, since its batch cannot be parsed: see line 10",
    ]
    assert done["not_judged"] == {}


def test_the_printed_finding_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, "USE Sales;\nCREATE ROUTE R WITH ADDRESS = 'TCP://far';\n", "r.sql")
    monkeypatch.chdir(tmp_path)
    out, err = run(capsys, "r.sql", "--fail-on", "error")
    lines = out.splitlines()
    assert lines[0] == "SBR031 warning (1): An address without a port"
    assert any(line.startswith("  - r.sql:2, Sales.R: ") for line in lines)
    assert "0 errors, 1 warning, 0 info, 0 suppressed" in out
    assert err == "1 file read, 0 skipped, 0 rows refused\n"


def test_a_script_has_its_own_instance_unless_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two servers' scripts make the same route: a fault only where both are for one."""
    text = "USE Sales;\nCREATE ROUTE R WITH ADDRESS = 'TCP://far:4022';\n"
    files = [str(script(tmp_path, text, name)) for name in ("a.sql", "b.sql")]
    assert linted(capsys, *files)["findings"] == []
    [twice] = linted(capsys, *files, "--instance", "SHOP")["findings"]
    assert (twice["code"], twice["instance_name"], twice["file"], twice["line"], twice["error_number"]) == (
        *("SBR042", "SHOP", files[1], 2, 15530),
    )


# The routes of the post on multiple routes, with slips in how the same is spelled.
BALANCED = """USE DatabaseA;
GO
CREATE ROUTE First WITH SERVICE_NAME = 'Target', BROKER_INSTANCE = 'B', ADDRESS = 'tcp://ServerB:4022';
CREATE ROUTE Second WITH SERVICE_NAME = 'Target', BROKER_INSTANCE = 'C', ADDRESS = 'tcp://ServerC:4022';
"""


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("'Target', BROKER_INSTANCE = 'c', ADDRESS = 'TCP://serverc:4022/'", [("SBR047", 5, "Third")]),
        ("'Target', BROKER_INSTANCE = 'C', ADDRESS = 'tcp://Gateway:4022'", []),
        ("'Target', ADDRESS = 'tcp://ServerC:4022'", [("SBR017", 5, "Third")]),
        ("'Other', ADDRESS = 'tcp://ServerC:4022'", []),
    ],
    ids=["the same route", "another way to an id", "an open route", "another service"],
)
def test_a_single_script_is_judged_for_balancing(
    statement: str, found: list[tuple[str, int, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = script(tmp_path, f"{BALANCED}CREATE ROUTE Third WITH SERVICE_NAME = {statement};\n")
    for more in ([], ["--instance", "ServerA"]):
        done = linted(capsys, str(file), *more)
        assert [(one["code"], one["line"], one["object"]) for one in done["findings"]] == found
        assert done["not_judged"] == {}


def test_variables_of_sqlcmd_and_the_database_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(script(tmp_path, "CREATE ROUTE R WITH ADDRESS = '$(where)';\n"))
    done = linted(capsys, file)
    assert done["findings"] == []
    assert "sqlcmd variable 'where' has no value" in done["not_taken"][0]
    assert [one["code"] for one in linted(capsys, file, "-v", "where=far:1")["findings"]] == ["SBR006"]
    [finding] = linted(capsys, file, "-v", "where=tcp://far", "--database", "Sales")["findings"]
    assert (finding["code"], finding["database_name"], finding["line"]) == ("SBR031", "Sales", 1)


def test_a_file_in_another_language_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = script(tmp_path, "-- nothing yet\n", "empty.sql")
    out, err = run(capsys, str(file), "--fail-on", "info")
    assert "0 errors, 0 warnings, 0 info" in out
    assert f"note: {file}: not read, no T-SQL statement is found in it\n" in err


@pytest.mark.parametrize("name", ["gone.sql", "gone", "."])
def test_nothing_to_lint_is_an_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = run(capsys, str(tmp_path / name), status=2)
    assert err.startswith("sbroute: ")
    assert err.count("\n") == 1


def test_exports_name_their_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    orders = [route("Old", "//old", "TCP://old.example")]
    shop = whole_shop(tmp_path, [], [], routes={"msdb": [route("AutoCreatedLocal")], "Orders": orders})
    [finding] = [one for one in linted(capsys, str(shop))["findings"] if one["code"] == "SBR031"]
    assert (finding["file"], finding["line"]) == (str(tmp_path / "SHOP" / "routes.jsonl"), None)


def test_statements_about_what_was_exported_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = whole_shop(tmp_path, [], [])
    file = script(tmp_path, "USE Orders;\nCREATE ROUTE R WITH ADDRESS = 'TCP://far';\n", "SHOP/r.sql")
    done = linted(capsys, str(shop))
    assert done["left_out"] == [
        f"{file}, line 2: CREATE ROUTE 'R' (sys.routes was exported; check --then tries it)"
    ]
    assert "SBR031" not in {one["code"] for one in done["findings"]}


def test_neither_spark_nor_arrow_is_needed(tmp_path: Path) -> None:
    done = without((*SPARK, "pandas", "pyarrow", "deltalake"), "lint", str(script(tmp_path)), "--format", "sarif")
    assert any(line.startswith("note: not taken, ") for line in done.stderr.splitlines())
    assert json.loads(done.stdout)["version"] == "2.1.0"


def test_a_configuration_needs_only_the_section_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, section = str(script(tmp_path)), tmp_path / "lint.yaml"
    section.write_text("lint: {suppress: [{code: SBR042}, {object: NoPort}]}\n", encoding="utf-8")
    done = linted(capsys, file, "--config", str(section))
    assert [one["code"] for one in done["findings"]] == ["SBR006"]
    assert done["suppressed"] == 3
    done = linted(capsys, file, "--set", "lint.suppress=[{code: SBR006}]")
    assert done["suppressed"] == 1
    section.write_text("lnt: {}\n", encoding="utf-8")
    assert "unknown key 'lnt', did you mean 'lint'?" in run(capsys, file, "--config", str(section), status=2)[1]


# What is missing is no fault: two instances of which A sends to B.
A_TO_B = {"Orders": [route("ToB", "//b", "TCP://B:4022"), route("AutoCreatedLocal")], "msdb": []}


def views_of(name: str, database_name: str, **views: Any) -> dict[str, Any]:
    """Return the exports of an instance with one database besides msdb."""
    databases = [database("msdb", f"{name.lower() * 8}", 4), database(database_name, f"{name.lower() * 7}1")]
    return {"databases": databases, "service_broker_endpoints": [listening(name)], **views}


def written(folder: Path, estate: dict[str, dict[str, Any]]) -> Path:
    """Export the views of instances. A view that is None is not exported."""
    for name, views in estate.items():
        export(folder, name, **{view: rows for view, rows in views.items() if rows is not None})
    return folder


def two_instances(folder: Path, **of_b: Any) -> str:
    """Return A, which is complete, and B without the service, a route in msdb and a route back."""
    nothing: dict[str, Any] = {"Orders": [], "msdb": []}
    a = views_of("A", "Orders", routes=A_TO_B, services={**nothing, "Orders": [{"name": "//a"}]})
    b = views_of("B", "Orders", routes=nothing, services=nothing)
    return str(written(folder, {"A": a, "B": {**b, **of_b}}))


def codes(done: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["code"], one["instance_name"]) for one in done["findings"] if one["severity"] == "error"}


def test_exported_views_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert codes(linted(capsys, two_instances(tmp_path / "none"))) == {("SBR021", "B")}
    local = {"routes": {"Orders": [], "msdb": [route("AutoCreatedLocal")]}}
    assert codes(linted(capsys, two_instances(tmp_path / "local", **local))) == {("SBR022", "B")}


@pytest.mark.parametrize("view", ["routes", "services", "databases"])
def test_missing_views_are_not_judged(view: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = linted(capsys, two_instances(tmp_path, **{view: None}))
    assert codes(done) == set()
    assert set(done["not_judged"]) >= {"SBR021"} or set(done["not_judged"]) >= {"SBR022"}
    assert {gap["view"] for gap in done["not_known"]} >= {f"sys.{view}"}
    out, _ = run(capsys, str(tmp_path), "--fail-on", "error")
    text = " ".join(out.split())
    assert "Not judged, because exports are missing: SBR02" in text
    assert f"; export sys.{view}" in text


def test_forwarding_that_was_not_exported_is_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on = {"Orders": [], "msdb": [route("On", "//b", "TCP://C:4022")]}
    done = linted(capsys, two_instances(tmp_path / "off", routes=on))
    assert codes(done) == {("SBR025", "B")}
    done = linted(capsys, two_instances(tmp_path / "unknown", routes=on, service_broker_endpoints=None))
    assert {one["code"] for one in done["findings"]} & {"SBR025", "SBR040"} == set()


def test_ends_of_dialogs_are_judged_only_with_complete_exports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A has the service itself. Without A's services, its open dialogs would seem to go to B and C."""
    local = {"msdb": [route("AutoCreatedLocal")], "X": []}
    others = [route("ToB", "//s", "TCP://B:4022"), route("ToC", "//s", "TCP://C:4022")]
    estate: dict[str, dict[str, Any]] = {
        name: views_of(name, "X", routes=local, services={"X": [{"name": "//s"}]}) for name in ("A", "B", "C")
    }
    estate["A"]["routes"] = {**local, "X": [route("Here", "//s"), *others]}
    assert ("SBR041", "A") not in codes(linted(capsys, str(written(tmp_path / "whole", estate))))
    del estate["A"]["services"]
    done = linted(capsys, str(written(tmp_path / "part", estate)))
    assert ("SBR041", "A") not in codes(done)
    assert done["not_judged"]["SBR041"] == 1
    estate["A"]["services"] = {"X": [{"name": "//other"}]}
    assert ("SBR041", "A") in codes(linted(capsys, str(written(tmp_path / "away", estate))))


def requests_of_a(folder: Path, address: str, **of_a: Any) -> str:
    """A asks for routes, and nobody holds the service that is to answer."""
    asks = {"Orders": [route("Ask", BROKER_CONFIGURATION_SERVICE, address)], "msdb": [route("AutoCreatedLocal")]}
    services: dict[str, Any] = {"Orders": [], "msdb": []}
    a = views_of("A", "Orders", routes=asks, services=services)
    b = views_of("B", "Orders", routes={"Orders": [], "msdb": [route("AutoCreatedLocal")]}, services=services)
    return str(written(folder, {"A": {**a, **of_a}, "B": b}))


@pytest.mark.parametrize(
    ("address", "missing", "is_judged"),
    [
        ("LOCAL", None, True),
        # What stays in the instance does not ask for its endpoint.
        ("LOCAL", "service_broker_endpoints", True),
        ("LOCAL", "services", False),
        # That the instance has such a database, its list alone tells.
        ("LOCAL", "databases", None),
        ("TCP://B:4022", None, True),
        # An instance without known addresses may be the one that is sent to.
        ("TCP://B:4022", "service_broker_endpoints", False),
        ("TCP://C:4022", None, None),
    ],
)
def test_requests_are_followed_within_the_exports(
    address: str, missing: str | None, is_judged: bool | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = linted(capsys, requests_of_a(tmp_path, address, **({} if missing is None else {missing: None})))
    assert (("SBR043", "A") in codes(done)) == (is_judged is True)
    assert ("SBR043" in done["not_judged"]) == (is_judged is False)


_SHARED = ("severity", "severity", "object")
_PLACE = ("instance_name", "database_name", "object")
# Of no weight, but claims about all that the instances hold.
_WHOLE = ("SBR045", "SBR046")


def found_in(folder: Path, seen: Counter[str]) -> set[tuple[Any, ...]]:
    """Return the errors and warnings on a folder. ``seen`` counts the uncertain findings."""
    from routing.cases.exported_files import FileOptions
    from routing.lint.file_linting import lint_files

    done = lint_files([str(folder)], FileOptions(), now=datetime(2026, 3, 1, 12, tzinfo=timezone.utc))
    seen.update(done.not_judged)
    return {
        # What several instances share stands under the first of them, which may be left out.
        tuple(one[key] for key in ("code", *(_SHARED if one["code"] in ("SBR013", "SBR026") else _PLACE)))
        for one in done.findings
        if one["severity"] in ("error", "warning") or one["code"] in _WHOLE
    }


def test_leaving_out_a_view_of_an_instance_adds_no_error(tmp_path: Path) -> None:
    """Random instances, each by itself: whole, and with views left out."""
    seen: Counter[str] = Counter()
    written = write_estates(random.Random(SEED), tmp_path, range(ESTATES), less=4, scripted=0)

    def found_of(name: str) -> set[tuple[Any, ...]]:
        findings = found_in(tmp_path / name.replace("\\", "$"), seen)
        return {(code, *rest) for code, _, *rest in findings}

    whole = {each.estate: found_of(each.name) for each in written if each.variant == FULL}
    seen.clear()
    in_part = 0
    for each in written:
        if each.variant not in (FULL, SCRIPT):
            findings = found_of(each.name)
            assert findings - whole[each.estate] == set(), (each.name, sorted(map(str, each.left_out)))
            in_part += len(findings)
    # It is no test where nothing is found, or nothing is left unjudged.
    assert in_part > 50
    assert len(seen) > 3


def random_estate(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Return the views of three instances with routes to each other."""
    names, services = ("A", "B", "C"), ("//s1", "//s2", "//S2", "//s3")
    ids = [f"{digit * 8}" for digit in "12345"]
    addresses = [f"TCP://{name}:{port}" for name in names for port in (4022, 4022, 4022, 4023)]

    def routes(number: int, local: float) -> list[dict[str, Any]]:
        draft_rows = [
            route(
                f"R{n}",
                rng.choice(services) if rng.random() < 0.9 else None,
                "LOCAL" if rng.random() < local else rng.choice(addresses),
            )
            for n in range(number)
        ]
        for one in draft_rows:
            if one["remote_service_name"] is not None and rng.random() < 0.25:
                one["broker_instance"] = f"{rng.choice(ids)}-0000-4000-8000-000000000000"
        return draft_rows

    def views(name: str) -> dict[str, Any]:
        held = {db: [{"name": s} for s in services if rng.random() < 0.5] for db in ("X", "Y")}
        if rng.random() < 0.3:
            held["X"].append({"name": BROKER_CONFIGURATION_SERVICE})
        asking = [route("Ask", BROKER_CONFIGURATION_SERVICE, rng.choice(["LOCAL", *addresses]))]
        caught = [route("AutoCreatedLocal")]
        return {
            "databases": [
                database("msdb", f"{name.lower() * 8}", 4),
                database("X", rng.choice(ids)),
                database("Y", rng.choice(ids), 6),
            ],
            "service_broker_endpoints": [listening(name, int(rng.random() < 0.6))],
            "routes": {
                "msdb": routes(rng.randint(0, 5), 0.55),
                "X": [*routes(4, 0.15), *(asking if rng.random() < 0.4 else [])],
                "Y": [*routes(2, 0.15), *(caught if rng.random() < 0.6 else [])],
            },
            "services": held,
        }

    return {name: views(name) for name in names}


def less(rng: random.Random, estate: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same without one or two views, or one of them of a database alone."""
    remaining = {name: dict(views) for name, views in estate.items()}
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(sorted(remaining))
        view = rng.choice(sorted(remaining[name]) or ["routes"])
        rows = remaining[name].get(view)
        if isinstance(rows, dict) and rng.random() < 0.5:
            remaining[name][view] = {db: each for db, each in rows.items() if db != rng.choice(sorted(rows))}
        else:
            remaining[name].pop(view, None)
    return remaining


def test_leaving_out_a_view_of_an_estate_adds_no_error(tmp_path: Path) -> None:
    """Random estates of several instances, whole and in part."""
    rng, seen, every, in_part = random.Random(SEED), Counter[str](), Counter[str](), Counter[str]()
    for number in range(ESTATES):
        estate = random_estate(rng)
        whole = found_in(written(tmp_path / f"{number}", estate), Counter())
        every.update(found[0] for found in whole)
        for variant in range(4):
            part = less(rng, estate)
            found = found_in(written(tmp_path / f"{number}-{variant}", part), seen)
            gone = {
                (name, view): "all" if view not in part[name] else set(rows) - set(part[name][view])
                for name, views in estate.items()
                for view, rows in views.items()
                if part[name].get(view) != rows
            }
            assert found - whole == set(), (number, variant, gone)
            in_part.update(one[0] for one in found)
    # It is no test where nothing is found, or nothing is left unjudged.
    assert {"SBR015", "SBR018", "SBR020", "SBR021", "SBR022", "SBR025"} <= set(every)
    assert {"SBR043", "SBR044", "SBR045", "SBR046"} <= set(every)
    assert {"SBR021", "SBR022", "SBR025", "SBR043", "SBR044", "SBR045"} <= set(in_part)
    assert {"SBR015", "SBR020", "SBR021", "SBR022", "SBR043", "SBR044", "SBR045", "SBR046"} <= set(seen)
