"""Write the pages on errors into `docs/errors`, from the catalogue and from what `check` prints about an example.

``python -m tests.error_pages`` writes them. Each page has small exports of its own, which hold its message.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from routing.advice.remedy import Remedy
from routing.advice.status_meanings import StatusTrouble, find_trouble
from routing.advice.trouble_catalogue import STATUSES, TroubleEntry
from routing.rules.message_texts import PIECES
from routing.rules.observed import NUMBERS, REFUSALS
from routing.views.check.checking import check
from tests.documented_errors import PAGES, WHERE_TO_LOOK, ErrorPage
from tests.exported import GUID, database, endpoint, export, listening, route, waiting, whole_shop
from tests.message_texts import MESSAGE_TEXTS
from tests.pages import ROOT
from tests.reasons_page import status_rows
from tests.shown_output import run_command

FOLDER = ROOT / "docs" / "errors"
_MOST_WORDS = 35
_LOCAL = route("AutoCreatedLocal")
_MSDB = database("msdb", "d4d4d4d4", 4)
_NO_ENDPOINT = dict.fromkeys(("endpoint_id", "is_message_forwarding_enabled", "machine_name", "port"))
_TO_STOCK = route("ToStock", "//stock", "TCP://stock.example:4022")
_BACK = route("Back", "//from", "TCP://shop.example:4022")
_LINT_CODES = dict(zip(REFUSALS, ("001", "002", "003", "004", "005", "006", "007", "008", "009"), strict=True))
"""The codes of lint for what CREATE ROUTE refuses, by SQL Server's number."""
Views = Mapping[str, Any]


def _stock(folder: Path, **views: Any) -> None:
    """Write the exports of STOCK, which holds service //stock; ``views`` replace some."""
    rows_by_view: dict[str, Any] = {
        "databases": [database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c")],
        "service_broker_endpoints": [listening("STOCK.example")],
        "routes": {"msdb": [_LOCAL], "Stock": [_LOCAL, _BACK]},
        "services": {"msdb": [], "Stock": [{"name": "//stock"}]},
        **views,
    }
    export(folder, "STOCK", **rows_by_view)


def _in_shop(**views: Any) -> Callable[[Path, ErrorPage], None]:
    """Return what writes a message to a service of SHOP's own database Orders; ``views`` replace some exports."""

    def write(folder: Path, page: ErrorPage) -> None:
        whole_shop(folder, [waiting(1, "//orders", transmission_status=page.status)], **views)

    return write


def _to_stock(
    shop: Views | None = None, stock: Views | None = None, broker: str | None = None
) -> Callable[[Path, ErrorPage], None]:
    """Return what writes a message from SHOP to //stock of STOCK, bound to ``broker`` if it is given."""

    def write(folder: Path, page: ErrorPage) -> None:
        row = waiting(1, "//stock", transmission_status=page.status, to_broker_instance=broker)
        dialog = endpoint(1, far_service="//stock", far_broker_instance=broker)
        views: dict[str, Any] = {
            "service_broker_endpoints": [listening("SHOP.example")],
            "routes": {"msdb": [_LOCAL], "Orders": [_LOCAL, _TO_STOCK]},
            "services": {"msdb": [], "Orders": [{"name": "//from"}]},
            **(shop or {}),
        }
        whole_shop(folder, [row], [dialog], **views)
        _stock(folder, **(stock or {}))

    return write


def _between_databases(is_enabled: int = 1) -> Callable[[Path, ErrorPage], None]:
    """Return what writes a message from database Shop of SHOP to a service of its database Orders."""
    sound = {"owner_sid": "0x01", "is_trustworthy_on": 0}
    databases = [_MSDB, database("Shop", "0e0e0e0e", 6), database("Orders", "0d0d0d0d", 5, is_enabled)]

    def write(folder: Path, page: ErrorPage) -> None:
        whole_shop(
            folder,
            [],
            databases=[{**row, **sound} for row in databases],
            routes={"msdb": [_LOCAL], "Shop": [_LOCAL], "Orders": [_LOCAL]},
            services={"msdb": [], "Shop": [], "Orders": [{"name": "//orders"}]},
            conversation_endpoints={"Shop": [endpoint(1, far_service="//orders")]},
            transmission_queue={"Shop": [waiting(1, "//orders", transmission_status=page.status)]},
        )

    return write


def _on_one_machine(folder: Path, page: ErrorPage) -> None:
    """Write a message from SHOP to STOCK\\TWO, whose endpoint has the port of STOCK\\ONE on the same machine."""
    row = waiting(1, "//stock", transmission_status=page.status)
    routes = {"msdb": [_LOCAL], "Orders": [_LOCAL, _TO_STOCK]}
    services = {"msdb": [], "Orders": [{"name": "//from"}]}
    whole_shop(
        folder, [row], service_broker_endpoints=[listening("SHOP.example")], routes=routes, services=services
    )
    for name, held_services in (("STOCK\\ONE", []), ("STOCK\\TWO", [{"name": "//stock"}])):
        export(
            folder,
            name,
            databases=[database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c")],
            service_broker_endpoints=[{"endpoint_id": 1, "name": "Broker", "is_message_forwarding_enabled": 0}],
            tcp_endpoints=[{"endpoint_id": 1, "name": "Broker", "port": 4022, "ip_address": None}],
            routes={"msdb": [_LOCAL], "Stock": [_LOCAL, _BACK]},
            services={"msdb": [], "Stock": held_services},
        )


_NO_ROUTE_THERE: Views = {"routes": {"msdb": [_LOCAL], "Orders": []}}
_ASKING = {
    "routes": {
        "msdb": [_LOCAL],
        "Orders": [route("Config", "SQL/ServiceBroker/BrokerConfiguration", "TCP://config:4022")],
    }
}
_TWINS = [_MSDB, database("Orders", "0d0d0d0d", 5, 0), database("Copy", "0d0d0d0d", 6, 1)]
_FORWARDED: Views = {"routes": {"msdb": [_LOCAL], "Orders": [route("Loop", "//stock", "TCP://shop.example:4022")]}}

_OFF = database("Orders", "0d0d0d0d", 5, 0)
_IN_A_GROUP = {"replica_id": GUID.format("b1b1b1b1"), "group_database_id": GUID.format("b2b2b2b2")}

EXAMPLES: Mapping[str, Callable[[Path, ErrorPage], None]] = {
    "1468": _in_shop(databases=[_MSDB, {**_OFF, **_IN_A_GROUP}]),
    "5070": _in_shop(databases=[_MSDB, _OFF]),
    "9692": _on_one_machine,
    "8490": _to_stock({"routes": {"msdb": [_LOCAL], "Orders": [_LOCAL]}}, broker=GUID.format("0d0d0d0d")),
    "9666": _to_stock({"service_broker_endpoints": [_NO_ENDPOINT]}),
    "9748": _to_stock({"service_broker_endpoints": [_NO_ENDPOINT]}),
    "9750": _to_stock(_NO_ROUTE_THERE),
    "9753": _to_stock(stock={"routes": {"msdb": [], "Stock": [_LOCAL, _BACK]}}),
    "9754-10061": _to_stock(stock={"service_broker_endpoints": [_NO_ENDPOINT]}),
    "9761": _to_stock(_ASKING),
    "9770": _to_stock(_ASKING),
    "9772": _in_shop(databases=_TWINS),
    "9773": _in_shop(databases=_TWINS),
    "9789": _to_stock(
        {
            **_FORWARDED,
            "databases": [database("msdb", "d4d4d4d4", 4, 0), database("Orders", "0d0d0d0d")],
            "services": {"msdb": [], "Orders": [{"name": "//stock"}]},
        }
    ),
    "9791": _in_shop(databases=[_MSDB, _OFF]),
    "9792": _to_stock(
        {
            "routes": {
                "msdb": [route("ToStock", "//stock", "TCP://stock.example:4022")],
                "Orders": [route("ToSelf", "//stock", "TCP://shop.example:4022")],
            }
        }
    ),
    "9793": _to_stock(_NO_ROUTE_THERE),
    "9795": _to_stock(
        {
            "routes": {"msdb": [_LOCAL], "Orders": [_LOCAL]},
            "services": {"msdb": [], "Orders": [{"name": "//stock"}]},
        },
        broker=GUID.format("5c5c5c5c"),
    ),
    "9796": _to_stock({"routes": {"msdb": [_LOCAL], "Orders": [_LOCAL]}}),
    "28005-916": _between_databases(),
    **dict.fromkeys(("28012", "28013"), _between_databases(is_enabled=0)),
    **dict.fromkeys(("8494", "9617", "9779", "9784", "11215", "28024", "28025"), _in_shop()),
    **dict.fromkeys(
        ("28005-9002", "28005-15404", "28005-15517", "28005-15581", "28005-33009", "28005-33019"), _in_shop()
    ),
    **dict.fromkeys(("28050", "28054"), _in_shop()),
}
"""The exports of the examples. Every other message goes from SHOP to STOCK by a route."""

_ANSWERED_BY_EXAMPLE = ("1468", "5070", "9692", "28005-916", "28027", "28035")
"""Pages with the words of the example, because those of the catalogue are about several errors of one trouble."""


@cache
def _check_example(page: ErrorPage) -> tuple[Remedy, str]:
    """Return the first remedy for an example, and what the command prints."""
    with tempfile.TemporaryDirectory() as name:
        EXAMPLES.get(page.name, _to_stock())(Path(name), page)
        [group] = check([name]).groups
        return group.advice[0].remedy, run_command(["check", name, "--width", "80"])


def _words_of(page: ErrorPage) -> Remedy | TroubleEntry:
    return _check_example(page)[0] if page.name in _ANSWERED_BY_EXAMPLE else STATUSES[page.trouble]


def _tell_meaning(page: ErrorPage) -> str:
    """Return the cause. What refuses ENABLE_BROKER is said beside the cause: that the broker is off."""
    words = _words_of(page)
    related_words = {"1468": words.actions[0], "5070": words.risk}.get(page.name)
    return related_words or words.cause


def render(page: ErrorPage) -> str:
    """Return the page of an error as Markdown."""
    remedy, printed = _check_example(page)
    words = _words_of(page)
    parts = [
        f"# {_escape(page.text)}",
        f"SQL Server's error {page.number}{_name_inner(page)}. {_tell_place(page)}",
        f"## What it means\n\n{_escape(_tell_meaning(page))}",
        f"## How to see it\n\n```sql\n{page.query or _query(page)}\n```",
        *([] if page.query else [f"Then look at {WHERE_TO_LOOK[page.trouble]}."]),
        "## What solved it\n\n" + "\n".join(f"- {_escape(action)}" for action in words.actions),
        *([] if words.risk is None else [f"Risk: {_escape(words.risk)}"]),
        "## Find the statement",
        "[Export](../how-to/export.md) your servers, and let `check` name the object and print the statement:",
        "```sh\nsbroute check exports\n```",
        f"In this example {_tell_example(page)}. {_describe(remedy)}:",
        f"```text\n{_shorten(printed)}\n```",
        "## Sources\n\n" + "\n".join(_sources(page)),
        "[All error numbers](index.md)",
    ]
    return "\n\n".join(parts) + "\n"


def _tell_place(page: ErrorPage) -> str:
    if page.query is not None:
        return "A statement fails with it, or it is in the error log. It is never a `transmission_status`."
    return "Look for it in `transmission_status` of `sys.transmission_queue`, and in the error log."


def _tell_example(page: ErrorPage) -> str:
    example = EXAMPLES.get(page.name)
    if example is None or example.__qualname__.startswith((_to_stock.__name__, _on_one_machine.__name__)):
        return "instance SHOP sends to instance STOCK"
    return "a message stays inside instance SHOP"


def _describe(remedy: Remedy) -> str:
    if remedy.statement is None:
        return "The answer"
    return "The answer has " + (
        "a statement that is ready to run" if remedy.is_complete else "statements to complete"
    )


def _name_inner(page: ErrorPage) -> str:
    return "" if page.inner is None else f" with {page.inner} inside"


def _query(page: ErrorPage) -> str:
    # A number that the text wraps is the same in every language.
    words = str(page.inner)
    if page.inner is None:
        text, piece = MESSAGE_TEXTS[page.number], max(PIECES[page.number], key=len)
        begin = text.lower().index(piece)
        words = text[begin : begin + len(piece)].replace("'", "''").strip('"')
    return (
        "SELECT conversation_handle, to_service_name, enqueue_time, transmission_status\n"
        f"FROM sys.transmission_queue\nWHERE transmission_status LIKE N'%{words}%';"
    )


def _shorten(printed: str) -> str:
    """Return the part of an answer that names the cause, the actions and the statement."""
    lines = printed.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("1. "))
    end = next(number for number, line in enumerate(lines) if number > begin and line.startswith("  evidence"))
    return "\n".join(line.rstrip() for line in lines[begin:end]).rstrip()


def _sources(page: ErrorPage) -> list[str]:
    listed = (
        "- SQL Server manual: [Events and errors](https://learn.microsoft.com/sql/relational-databases/errors-events/"
        "database-engine-events-and-errors), for the text"
    )
    return [*(f"- [{source.title}]({source.address})" for source in page.sources), listed]


def _escape(text: str) -> str:
    return re.sub(r"([<>*\[\]|])", r"\\\1", text)


def _clip(text: str) -> str:
    """Return the first words of a text: a table has no long cells."""
    words = text.split(" ")
    return text if len(words) <= _MOST_WORDS else " ".join([*words[:_MOST_WORDS], "…"])


def render_index() -> str:
    """Return the page with a row for every known number."""
    rows = [f"| {_link(page)} | {_escape(_clip(page.text))} | {_escape(_tell_meaning(page))} |" for page in PAGES]
    other_numbers = [number for number in sorted(NUMBERS) if all(page.number != number for page in PAGES)]
    answers = ((f"| {row[0]}", *row[1:-1], f"{row[-1]} |") for row in status_rows())
    parts = [
        "# Error messages",
        (
            "Find the text of `transmission_status`, or of an error log. "
            "`sbroute check` tells which of your objects is behind it."
        ),
        "## Errors with a page",
        "\n".join(["| number | text | meaning |", "|---|---|---|", *rows]),
        "## Other numbers",
        (
            "No public case shows what solved these. The table says what they mean and where to look. `…` stands"
            " for a value."
        ),
        "\n".join(["| number | text | meaning | where to look |", "|---|---|---|---|", *map(_row, other_numbers)]),
        "## What to do",
        "\n".join(["| number | what is wrong | what to do |", "|---|---|---|", *map(" | ".join, answers)]),
        (
            "An empty `transmission_status` means that SQL Server has not tried yet, or sent the message and waits"
            " for the acknowledgement. See [questions](../faq.md#the-status-is-blank-is-the-message-lost)."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _link(page: ErrorPage) -> str:
    shown = str(page.number) if page.inner is None else f"{page.number}, {page.inner}"
    return f"[{shown}]({page.name}.md)"


def _row(number: int) -> str:
    trouble = find_trouble(number, "?")
    assert trouble is not None
    place = WHERE_TO_LOOK[trouble]
    if trouble is StatusTrouble.STATEMENT_REFUSED:
        code = f"SBR{_LINT_CODES[number]}"
        place = f"the statement: [{code}](../../routing/lint/pages/{code}.md)"
    return f"| {number} | {_escape(_clip(MESSAGE_TEXTS[number]))} | {_escape(STATUSES[trouble].cause)} | {place} |"


def render_all() -> dict[str, str]:
    """Return the text of every page by its file name."""
    return {"index.md": render_index(), **{f"{page.name}.md": render(page) for page in PAGES}}


def write_pages() -> None:
    """Write every page, and delete those of errors that have none any more."""
    FOLDER.mkdir(exist_ok=True)
    pages = render_all()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for file in FOLDER.iterdir():
        if file.name not in pages:
            file.unlink()


if __name__ == "__main__":
    write_pages()
