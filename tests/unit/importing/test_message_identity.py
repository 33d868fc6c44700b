"""Which message is which: two ends of one conversation in one instance, and messages of older releases."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.schemas import MESSAGES, OBSERVED_ROUTING
from tests.exported import conversation, database, endpoint, export, handle, route, waiting
from tests.imports import MONDAY, TUESDAY, config_in, import_views, make_table, no_spark, place, rows_at

if TYPE_CHECKING:
    from routing.config import Config
    from routing.importing.covered_rows import ImportResult

pytest.importorskip("deltalake")
DATABASES = {"Orders": "0d0d0d0d", "Archive": "0a0a0a0a"}


def export_queues(folder: Path, at: datetime, **queues: list[tuple[int, bool, int]]) -> list[str]:
    """Export SHOP. A queue's messages are numbers of conversations, roles and sequence numbers."""
    numbers = {"Orders": 1, "Archive": 500}
    ends = {
        name: [
            endpoint(number, is_initiator=int(role), conversation_handle=handle(numbers[name] + number))
            for number, role, _ in queue
        ]
        for name, queue in queues.items()
    }
    messages = {
        name: [
            waiting(number, "//from", sequence, conversation_handle=handle(numbers[name] + number))
            for number, _, sequence in queue
        ]
        for name, queue in queues.items()
    }
    views: dict[str, Any] = {
        "databases": [database(name, guid, 5 + n) for n, (name, guid) in enumerate(DATABASES.items())],
        "routes": {name: [route("AutoCreatedLocal")] for name in queues},
        "conversation_endpoints": ends,
        "transmission_queue": messages,
    }
    return [str(export(folder, at=at.isoformat(), **views))]


def ids_of(folder: Path, key: str = "messages") -> list[tuple[str, str]]:
    return sorted((row["database_name"], row["message_id"]) for row in rows_at(place(folder, key)))


def added(done: ImportResult) -> tuple[int, int]:
    return done.written["messages"]["added"], done.written["observed_routing"]["added"]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return config_in(tmp_path)


@pytest.mark.parametrize(
    "is_initiator", [pytest.param(False, id="two-targets"), pytest.param(True, id="a-copied-database")]
)
@pytest.mark.parametrize("exports", ["one", "one-after-another"])
def test_two_ends_of_one_conversation_in_one_instance(
    config: Config, tmp_path: Path, is_initiator: bool, exports: str
) -> None:
    end = [(1, is_initiator, 0)]
    if exports == "one":
        first = import_views(no_spark(), config, export_queues(tmp_path / "a", MONDAY, Orders=end, Archive=end))
        assert (first.rejected, added(first)) == ([], (2, 2))
        again = export_queues(tmp_path / "b", TUESDAY, Orders=end, Archive=end)
    else:
        import_views(no_spark(), config, export_queues(tmp_path / "a", MONDAY, Orders=end))
        second = import_views(no_spark(), config, export_queues(tmp_path / "b", MONDAY, Archive=end))
        assert (second.rejected, added(second)) == ([], (1, 1))
        again = export_queues(tmp_path / "c", TUESDAY, Orders=end, Archive=end)
    role = "I" if is_initiator else "T"
    ids = [(name, f"{conversation(1)}:{role}:0:{name}") for name in ("Archive", "Orders")]
    assert (ids_of(tmp_path), ids_of(tmp_path, "observed_routing")) == (ids, ids)
    # The next day both still wait: two observations more, and the same again adds nothing.
    assert added(import_views(no_spark(), config, again)) == (0, 2)
    assert added(import_views(no_spark(), config, again)) == (0, 0)


def stored_message(message_id: str, *, database_name: str, **columns: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(MESSAGES.names),
        "message_id": message_id,
        "conversation_id": conversation(1),
        "is_initiator": False,
        "message_sequence_number": 0,
        "enqueue_time": MONDAY,
        "observed_at": MONDAY,
        "instance_name": "SHOP",
        "database_name": database_name,
        "to_service_name": "//from",
        **columns,
    }


def stored_observation(message_id: str, *, database_name: str, at: datetime = MONDAY) -> dict[str, Any]:
    return {
        **dict.fromkeys(OBSERVED_ROUTING.names),
        "instance_name": "SHOP",
        "database_name": database_name,
        "conversation_id": conversation(1),
        "is_initiator": False,
        "message_sequence_number": 0,
        "message_id": message_id,
        "observed_at": at,
        "source": "TRANSMISSION_QUEUE",
        "to_service_name": "//from",
    }


OLD_ID = f"{conversation(1)}:T:0"
NEW_ID = f"{OLD_ID}:Archive"


@pytest.mark.parametrize(
    ("stored", "observed", "queues", "ids", "observed_ids"),
    [
        pytest.param(
            stored_message(OLD_ID, database_name="Orders"),
            [stored_observation(OLD_ID, database_name="Orders")],
            {"Orders": [(1, False, 0)]},
            [("Orders", OLD_ID)],
            [("Orders", OLD_ID)],
            id="of-release-0.2.0-nothing-is-added",
        ),
        pytest.param(
            stored_message(OLD_ID, database_name="Orders"),
            [stored_observation(OLD_ID, database_name="Orders")],
            {"Orders": [(1, False, 0)], "Archive": [(1, False, 0)]},
            [("Archive", NEW_ID), ("Orders", OLD_ID)],
            [("Archive", NEW_ID), ("Orders", OLD_ID)],
            id="the-second-end-that-was-lost-is-added",
        ),
        pytest.param(
            stored_message(OLD_ID, database_name="Orders"),
            [stored_observation(OLD_ID, database_name="Archive")],
            {"Orders": [(1, False, 0)]},
            [("Orders", OLD_ID)],
            [("Archive", OLD_ID), ("Orders", OLD_ID)],
            id="an-observation-of-the-other-end-has-the-old-id",
        ),
        pytest.param(
            stored_message("mine", database_name="Orders", conversation_id=conversation(1).upper()),
            [],
            {"Orders": [(1, False, 0)]},
            [("Orders", "mine")],
            [("Orders", "mine")],
            id="somebody's-own-id-and-the-conversation-in-upper-case",
        ),
        pytest.param(
            stored_message("mine", database_name="Orders", message_sequence_number=None),
            [],
            {"Orders": [(1, False, 0)]},
            [("Orders", f"{OLD_ID}:Orders"), ("Orders", "mine")],
            [("Orders", f"{OLD_ID}:Orders")],
            id="without-a-sequence-number-it-is-another",
        ),
        pytest.param(
            stored_message("theirs", database_name="orders"),
            [],
            {"Orders": [(1, False, 0)]},
            [("Orders", f"{OLD_ID}:Orders"), ("orders", "theirs")],
            [("Orders", f"{OLD_ID}:Orders")],
            id="another-database-in-lower-case",
        ),
    ],
)
def test_a_message_is_known_by_its_end_and_its_number(
    config: Config,
    tmp_path: Path,
    stored: dict[str, Any],
    observed: list[dict[str, Any]],
    queues: dict[str, list[tuple[int, bool, int]]],
    ids: list[tuple[str, str]],
    observed_ids: list[tuple[str, str]],
) -> None:
    make_table(place(tmp_path, "messages"), [stored], MESSAGES)
    make_table(place(tmp_path, "observed_routing"), observed, OBSERVED_ROUTING)
    sources = export_queues(tmp_path / "a", MONDAY, **queues)
    for _ in range(2):
        import_views(no_spark(), config, sources)
        assert (ids_of(tmp_path), ids_of(tmp_path, "observed_routing")) == (ids, observed_ids)
    # What is observed later carries the id of the stored message, too.
    import_views(no_spark(), config, export_queues(tmp_path / "b", TUESDAY, **queues))
    later = {
        (row["database_name"], row["message_id"])
        for row in rows_at(place(tmp_path, "observed_routing"))
        if row["observed_at"] == TUESDAY
    }
    assert (ids_of(tmp_path), later) == (ids, set(observed_ids) & {(name, i) for name, i in ids if name in queues})
