"""Lint: positive and negative cases of every finding, and all findings on the seed estates, in one run."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import pytest

from routing.demo.company import found_company
from routing.demo.drafting import EstateDraft
from routing.demo.example_estates import document_estates
from routing.lint.catalogue import FINDINGS
from routing.lint.lint_settings import LintSuppression
from routing.lint.linting import LintResult, lint
from routing.schemas import RESOLVED_ROUTES
from routing.terms import BROKER_CONFIGURATION_SERVICE
from tests.frames import arrow, arrow_of, load_cases, merged
from tests.golden_texts import assert_golden
from tests.lint_drafts import NOW, Tables, apart, pair, together
from tests.lint_estates import HAS, HAS_NOT, Estate
from tests.lint_messages import MESSAGES, RESOLVED, RISKS, messages_estate, risks_estate

CASES = {
    f"{kind}-{number}-{estate.code.lower()}": estate
    for kind, estates in (("has", HAS), ("not", HAS_NOT))
    for number, estate in enumerate(estates)
}
QUIET = (
    LintSuppression(code="SBR036", instance_name="quiet/one"),
    LintSuppression(instance_name="quiet/two", object="quiet:Stock"),
)
# By golden file the estates that the project ships: label → title and tables.
SEEDS: dict[str, dict[str, tuple[str, Any]]] = {
    "lint_documents.txt": {
        f"document-{n}": (estate.title, estate.tables) for n, estate in enumerate(document_estates())
    },
    "lint_cases.txt": {
        f"case-{n}": (f"{case['file']}: {case['case']}", case["tables"]) for n, case in enumerate(load_cases())
    },
    "lint_company.txt": {"company": ("the demo's company", found_company(random.Random(20260105)).draft.tables)},
}
OF_MESSAGES = {code for code, *_ in MESSAGES}
Row = dict[str, Any]
# No table shows what SQL Server refused, or what is beside the routing.
OF_FILES = {"SBR042", "SBR049", "SBR050", "SBR051", "SBR052", "SBR053"}


def all_estates() -> Tables:
    """Return all estates in one set of tables, each with unique names."""
    built = {label: estate.build().tables for label, estate in CASES.items()}
    seeds = {label: tables for of_file in SEEDS.values() for label, (_, tables) in of_file.items()}
    many = [apart(cast("Tables", tables), label) for label, tables in {**built, **seeds}.items()]
    without_messages = [{key: rows for key, rows in tables.items() if key != "messages"} for tables in many]
    quiet = apart(cast("Tables", pair().tables), "quiet")
    return merged([*without_messages, quiet, messages_estate(), risks_estate()])


@cache
def _lint() -> LintResult:
    resolved = arrow_of(RESOLVED, RESOLVED_ROUTES)
    return lint(arrow(all_estates()), now=NOW, suppress=QUIET, resolved=resolved)


def _rows() -> list[Row]:
    return [dict(row) for row in _lint().findings]


def _of(label: str, *, of_messages: bool = False) -> list[Row]:
    """Return the findings of one estate. Only one estate has messages, so the routes of the others are unused."""
    rows = [row for row in _rows() if (row["instance_name"] or "").startswith(f"{label}/")]
    return [row for row in rows if (row["code"] in OF_MESSAGES) is of_messages]


@pytest.mark.parametrize("label", CASES)
def test_a_finding_has_its_place(label: str) -> None:
    estate: Estate = CASES[label]
    got = [
        tuple(together(row[name], label) for name in ("instance_name", "database_name", "object"))
        for row in _of(label)
        if row["code"] == estate.code
    ]
    assert sorted(got, key=_readable) == sorted(estate.found, key=_readable)


def _readable(found: Sequence[str | None]) -> tuple[str, ...]:
    return tuple(part or "" for part in found)


def test_every_finding_has_both_estates() -> None:
    codes = {finding.code for finding in FINDINGS} - OF_MESSAGES - OF_FILES
    assert {estate.code for estate in HAS} == codes
    assert {estate.code for estate in HAS_NOT} == codes


@pytest.mark.parametrize("golden", list(SEEDS))
def test_all_findings_on_the_seed_estates(golden: str) -> None:
    """Each line was checked by hand. Another test has the findings on messages."""
    lines = []
    for label, (title, _) in SEEDS[golden].items():
        lines.append(f"# {title}")
        lines += [
            " | ".join(
                together(row[column], label) or "-"
                for column in ("code", "severity", "instance_name", "database_name", "object")
            )
            for row in _of(label)
        ]
    assert_golden(golden, "\n".join(lines))


def test_findings_that_messages_show() -> None:
    got = [
        (row["code"], row["instance_name"], row["database_name"], row["object"], row["message"])
        for row in _of("messages", of_messages=True)
    ]
    assert got == MESSAGES


def test_dialogs_at_risk() -> None:
    names = ("instance_name", "database_name", "object", "message")
    got = [tuple(row[name] for name in names) for row in _of("risks") if row["code"] == "SBR041"]
    assert got == RISKS


def test_without_messages_dialogs_are_not_judged() -> None:
    done = lint(arrow(risks_estate()), now=NOW)
    got = [row["message"] for row in done.findings if row["code"] == "SBR041"]
    assert got == [message.partition(";")[0] for *_, message in RISKS]


def test_unknown_forwarding_causes_no_error() -> None:
    unknown = [label for label, estate in CASES.items() if _forwarding(estate) == {None}]
    assert len(unknown) == 4
    rows = [row for label in unknown for row in _of(label)]
    # What is bound to an id that nobody has is dropped by a LOCAL route, whether the instance forwards or not.
    assert {row["code"] for row in rows if row["severity"] == "error"} == {"SBR022"}
    findings = {(row["code"], row["message"]) for row in rows if "not known and assumed" in row["message"]}
    expected = "messages that arrive for it are dropped if forwarding is off, which is not known and assumed"
    assert ("SBR040", expected) in findings
    pinned = {message.partition("; ")[2].replace("/two ", " ") for code, message in findings if code == "SBR015"}
    assert [re.sub(r"forwarding of \S+ ", "forwarding of X ", one) for one in pinned] == [
        "the forwarding of X is not known and assumed to be off"
    ]


def _forwarding(estate: Estate) -> set[object]:
    return {row["is_message_forwarding_enabled"] for row in estate.build().tables["instances"]}


def test_coverage_counts_used_routes() -> None:
    """A route counts if a message reports it, was led back by it, or may use it. Its versions are one route."""
    coverage = _lint().coverage
    assert coverage is not None
    rows = {row["instance_name"]: (row["routes"], row["used"]) for row in coverage}
    assert rows["messages/hub"] == (6, 4)
    assert rows["has-0-sbr001/one"] == (2, 0)


def test_finding_rows_are_sorted_and_complete() -> None:
    rows = _rows()
    assert rows == sorted(rows, key=lambda row: tuple((v is not None, v or "") for v in list(row.values())[:-1]))
    advice_by_code = {f.code: (str(f.severity), f.advice) for f in FINDINGS}
    assert {row["code"] for row in rows} == set(advice_by_code) - OF_FILES
    assert all((row["severity"], row["advice"]) == advice_by_code[row["code"]] for row in rows)
    assert len({tuple(row.values()) for row in rows}) == len(rows)


def test_findings_have_sql_servers_numbers() -> None:
    """SBR022 and SBR020 have the number of their reason, the others that of their code."""
    numbers = {(row["code"], row["error_number"]) for row in _rows()}
    assert {n for code, n in numbers if code == "SBR022"} <= {9795, 9796}
    assert {n for code, n in numbers if code == "SBR020"} <= {9793, 9795, 9796}
    assert {n for code, n in numbers if code == "SBR006"} == {9744}
    assert {n for code, n in numbers if code == "SBR026"} == {None}


def test_suppressed_findings_are_set_apart() -> None:
    def shown(rows: list[Row]) -> list[tuple[str, str]]:
        return [(row["code"], row["instance_name"]) for row in rows]

    # The pair has both codes at both instances.
    assert shown(_of("quiet")) == [("SBR023", "quiet/one"), ("SBR036", "quiet/two")]
    assert shown([dict(row) for row in _lint().suppressed]) == [("SBR023", "quiet/two"), ("SBR036", "quiet/one")]


def _around(draft: EstateDraft) -> list[str]:
    done = lint(arrow(cast("Tables", draft.tables)), now=NOW)
    return [row["message"] for row in done.findings if row["code"] == "SBR026"]


def _ring(draft: EstateDraft, name: str, size: int, service: str | None, *, closed: bool = True) -> None:
    """Return forwarders that send a service to each other. If the ring is open, the last one leads elsewhere."""
    for number in range(size):
        draft.instance(f"{name}{number}", f"tcp://{name}{number}:4022", forwarding=True)
        last = number == size - 1
        to = "tcp://far:4022" if last and not closed else f"tcp://{name}{0 if last else number + 1}:4022"
        draft.route(f"{name}{number}", "msdb", "On", to, service)


def test_separate_rings_are_separate_findings() -> None:
    """A ring for a named service is not part of a ring of routes for any service."""
    draft = EstateDraft()
    _ring(draft, "named", 2, "Lost")
    _ring(draft, "any", 3, None)
    draft.route("named0", "msdb", "Aside", "tcp://any0:4022", "Other")
    assert _around(draft) == [
        "messages for it go round between any0, any1, any2",
        "messages for it go round between named0, named1",
    ]


@pytest.mark.parametrize("closed", [True, False])
def test_a_long_chain_of_forwarders_is_a_loop_only_if_closed(closed: bool) -> None:
    draft = EstateDraft()
    _ring(draft, "f", 1_500, "Lost", closed=closed)
    messages = ["messages for it go round between f0, f1, f10, f100, f1000 and 1495 more"]
    assert _around(draft) == (messages if closed else [])


def test_expired_versions_give_no_finding() -> None:
    draft = EstateDraft()
    _ring(draft, "f", 2, "Lost")
    for row in draft.tables["routes"]:
        row["valid_to"] = NOW
    assert _around(draft) == []


def test_no_messages_are_tried_from_an_unlisted_instance() -> None:
    """All its messages would be rejected, but its rows are still checked."""
    draft = EstateDraft()
    draft.database("ghost", "A", "id-a", "Stock")
    draft.database("ghost", "B", "id-b", "Stock")
    draft.route("ghost", "A", "R", "tcp://far", "Stock")
    draft.route("ghost", "A", "S", "tcp://far", "Stock")
    done = lint(arrow(cast("Tables", draft.tables)), now=NOW)
    assert {row["code"] for row in done.findings} == {"SBR019", "SBR031"}


def test_a_scope_with_many_requested_services_is_one_finding() -> None:
    """A route that names the service ends the search before a request, be it bound to an id or not."""
    draft = EstateDraft()
    draft.instance("one", "tcp://one:4022")
    draft.database("one", "msdb", "id-msdb")
    draft.database("one", "Sales", "id-sales", *(f"S{number}" for number in range(9)))
    draft.database("one", "Off", "id-off", "S9", enabled=False)
    for database in ("Sales", "Off", "msdb"):
        draft.route("one", database, "Ask", "tcp://far:4022", BROKER_CONFIGURATION_SERVICE)
    draft.route("one", "Sales", "Open", "LOCAL", "S0")
    draft.route("one", "Sales", "Bound", "LOCAL", "S2", "id-sales")
    draft.route("one", "Sales", "Elsewhere", "tcp://far:4022", "T0")
    done = lint(arrow(cast("Tables", draft.tables)), now=NOW)
    messages = {row["database_name"]: row["message"] for row in done.findings if row["code"] == "SBR033"}
    expected = "an open message for %s opens a route request, though this instance has the service"
    assert messages == {
        "Sales": expected % "S1, S3, S4, S5, S6 and 3 more",
        "msdb": expected % "S0, S1, S2, S3, S4 and 5 more",
    }
