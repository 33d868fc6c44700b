"""The estate as a matrix: its rows, its columns, and the cell of each message."""

from __future__ import annotations

from routing.views.page.estate_matrix import MOST_ADDRESSES, MOST_INSTANCES, UNKNOWN, matrix_of
from routing.views.page.facts import EstateInstance, MessageFlow
from routing.views.page.pictures.estate_picture import cell_rows

PLACES = [
    EstateInstance("A", ("tcp://a:4022",), ("Shop",)),
    EstateInstance("B", ("tcp://b:4022",), ("Stock",)),
    EstateInstance("C", ("tcp://b:4022",), ()),
]


def flow(
    instance: str, outcome: str, address: str | None = None, *end: str | None, messages: int = 1
) -> MessageFlow:
    reason = None if outcome == "NOT_KNOWN" else "R"
    return MessageFlow(instance, "D", "//s", outcome, reason, None, address, None, messages, 0, *end)


def test_messages_count_where_they_end() -> None:
    flows = {
        flow("A", "DELIVERED"): ("A", "A"),
        flow("A", "DELAYED"): ("A", "A"),
        flow("A", "SENT", "TCP://A:4022", "DROPPED", "R", "B"): ("A", "B"),
        # Nobody knows how it ends: at the only instance that has the address, or at an address of none or of two.
        flow("B", "SENT", "TCP://A:4022"): ("B", "A"),
        flow("B", "SENT", "TCP://elsewhere:4022"): ("B", "tcp://elsewhere:4022"),
        flow("A", "FORWARDED", "TCP://B:4022"): ("A", "tcp://b:4022"),
        # A connection that fails ends it before what the rules say.
        flow("B", "SENT", "TCP://A:4022", "CONNECTION_FAILS", "R", "C"): ("B", "A"),
        flow("B", "NOT_KNOWN"): ("B", UNKNOWN),
        flow("B", "SENT"): ("B", UNKNOWN),
    }
    matrix = matrix_of(flows, PLACES)
    assert {one: matrix.place(one) for one in flows} == flows
    assert sorted(matrix.rows) == ["A", "B"]
    assert matrix.columns[-1] == UNKNOWN
    assert set(matrix.columns) == {target for _, target in flows.values()}


def test_many_instances_are_reduced_to_those_with_most_trouble() -> None:
    many = MOST_INSTANCES + 25
    flows = [flow(f"i{n:03}", "DELIVERED", messages=1_000) for n in range(many)]
    flows += [flow(f"i{n:03}", "DELAYED", messages=n) for n in range(1, many)]
    flows += [flow(f"i{n:03}", "SENT", f"tcp://x{n}:1") for n in range(many)]
    matrix = matrix_of(flows, ())
    assert matrix.rows == [*(f"i{n:03}" for n in range(many - 1, 24, -1)), "25 other instances"]
    assert matrix.columns[:-1][: MOST_INSTANCES + 1] == matrix.rows
    assert len(matrix.columns) == MOST_INSTANCES + 1 + MOST_ADDRESSES + 1
    assert matrix.columns[-1] == f"{many - MOST_ADDRESSES} other addresses"
    assert matrix.place(flows[0]) == ("25 other instances", "25 other instances")
    assert matrix.place(flows[many - 1]) == ("i064", "i064")


def test_few_stuck_messages_among_many_come_first() -> None:
    flows = [flow("A", "DELIVERED", messages=9_999), flow("A", "DELAYED")]
    matrix = matrix_of(flows, PLACES)
    delayed, delivered = cell_rows(matrix, {("A", "A"): {"DELIVERED": 9_999, "DELAYED": 1}}, {("A", "A"): "#x"})
    assert (delayed["outcome"], delivered["outcome"]) == ("DELAYED", "DELIVERED")
    assert delayed["x2"] - delayed["x"] > 0.09
    assert delivered["x"] == delayed["x2"]
    assert {row["href"] for row in (delayed, delivered)} == {"#x"}
    assert delayed["words"] == "10,000 messages from A to A, 1 of them stuck"
