"""Where messages of a report end, beside the tests' own walk of each message, and by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from routing.engines.traffic_tables import SENT_KEY, SentKey, open_traffic
from routing.rules.timeline import micros_of
from routing.schemas import INPUTS, RESOLVED_ROUTES
from routing.tables.table_columns import TableColumns
from routing.views.report.flows import FlowEnd, FlowEndings, count_all
from tests.estate_rows import SALES, database, estate, instance, route, service
from tests.frames import arrow_of, moment
from tests.random_estates import AS_OF, networks
from tests.reference.joint import end_there
from tests.reference.paths import follow_all
from tests.reference.resolver import resolve

pytest.importorskip("pyarrow")
SETTINGS = ("instances", "databases", "services", "routes")
NOON, EVENING = (micros_of(moment(f"2026-01-05T{hour}:00:00Z")) for hour in (12, 18))


def endings(tables: dict[str, list[dict[str, Any]]]) -> FlowEndings:
    return FlowEndings.of({key: TableColumns.of_rows(tables[key], INPUTS[key]) for key in SETTINGS})


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_the_reported_end_of_departed_messages_is_the_end_of_each(as_of: Any) -> None:
    """A report cannot know the effects of a message's hops and requests on record."""
    tables = networks()
    messages = tables["messages"]
    rows = resolve(tables, as_of=as_of).resolved_routes
    paths = follow_all(tables, as_of).items()
    # Some share their id.
    times = Counter((messages[place]["instance_name"], messages[place]["message_id"]) for place, _ in paths)
    walked = {
        (messages[place]["instance_name"], messages[place]["message_id"]): end_there(path.there)
        for place, path in paths
        if messages[place].get("hops_remaining") is None
        and times[messages[place]["instance_name"], messages[place]["message_id"]] == 1
    }
    found = endings(tables)
    by_key: dict[SentKey, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["outcome"] in ("SENT", "FORWARDED"):
            by_key[SentKey(*(row[name] for name in SENT_KEY))].append(row)
    known_count = unknown = 0
    for key, theirs in by_key.items():
        decided = [micros_of(row["decided_at"]) for row in theirs]
        end = found.find(key, min(decided), max(decided))
        assert end is not None
        places = [(row["instance_name"], row["message_id"]) for row in theirs]
        ends = {walked[one] for one in places if one in walked}
        if end.ending == "NOT_KNOWN":
            unknown += len(theirs) if len(ends) == 1 and ends != {"NOT_KNOWN"} else 0
        else:
            known_count += len(theirs)
            assert ends <= {end.ending}, key
    assert known_count > 200
    # Requests for routes stop many messages of these estates.
    assert unknown < 0.2 * known_count


def test_an_ending_that_changes_is_not_known() -> None:
    near, far = {"instance_name": "near"}, {"instance_name": "far"}
    tables = estate(
        instances=[instance("near"), instance("far", "tcp://far:4022")],
        databases=[database("Sales", SALES, **near), database("Stock", SALES[::-1], **far)],
        services=[service("Stock", "//stock", **far)],
        routes=[
            route("Far", "//stock", "tcp://far:4022", **near, database_name="Sales"),
            route("Local", None, "LOCAL", **far, database_name="msdb", valid_to=moment("2026-01-05T15:00:00Z")),
        ],
    )
    key = SentKey("near", "Sales", "//stock", "SENT", "tcp://far:4022", None, True)
    delivered, delayed = FlowEnd("DELIVERED", "LOCAL_SERVICE", "far"), FlowEnd("DELAYED", "NO_ROUTE", "far")
    ends = endings(tables)
    assert ends.find(key, NOON, NOON + 1) == delivered
    assert ends.find(key, EVENING, EVENING) == delayed
    assert ends.find(key, NOON, EVENING) == FlowEnd("NOT_KNOWN")
    assert ends.find(key._replace(address="tcp://elsewhere:4022"), NOON, NOON) == FlowEnd("NOT_KNOWN")
    assert ends.find(key._replace(outcome="DELIVERED", address="LOCAL"), NOON, NOON) is None


@pytest.mark.parametrize(
    ("routes", "ending"),
    [
        ([route("A", "//stock", "tcp://empty:4022", mirror_address="tcp://far:4022")], "DELIVERED"),
        ([route("A", "//stock", "tcp://far:4022"), route("B", "//stock", "tcp://empty:4022")], "DROPPED"),
        ([route("A", "//stock", "tcp://far:4022"), route("B", "//stock", "tcp://unknown:4022")], "NOT_KNOWN"),
    ],
    ids=["one partner delivers", "one of two routes drops", "one of two routes is not known"],
)
def test_every_choice_of_the_transport_counts(routes: list[dict[str, Any]], ending: str) -> None:
    near, far, empty = ({"instance_name": name} for name in ("near", "far", "empty"))
    tables = estate(
        instances=[instance("near"), instance("far", "tcp://far:4022"), instance("empty", "tcp://empty:4022")],
        databases=[database("Sales", SALES, **near), database("Stock", SALES[::-1], **far)],
        services=[service("Stock", "//stock", **far)],
        routes=[
            *({**each, **near, "database_name": "Sales"} for each in routes),
            route("Local", None, "LOCAL", **far, database_name="msdb"),
            route("Local", None, "LOCAL", **empty, database_name="msdb"),
        ],
    )
    key = SentKey("near", "Sales", "//stock", "SENT", routes[0]["address"], None, True)
    found = endings(tables).find(key, NOON, NOON)
    assert found is not None
    assert found.ending == ending


def test_flows_and_points_have_the_same_endings() -> None:
    tables = networks()
    rows = resolve(tables, as_of=AS_OF).resolved_routes
    flows, series = count_all(open_traffic(arrow_of(rows, RESOLVED_ROUTES)), find_end=endings(tables).find)
    counts: list[Counter[tuple[str, str]]] = [Counter(), Counter()]
    for flow in flows:
        counts[0][flow.outcome, flow.end] += flow.messages
    for point in series.points:
        counts[1][point.outcome, point.end] += point.messages
    assert counts[0] == counts[1]
    assert sum(flow.messages for flow in flows) == len(rows)
    assert {"DELIVERED", "NOT_KNOWN"} < {end for outcome, end in counts[0] if outcome in ("SENT", "FORWARDED")}
