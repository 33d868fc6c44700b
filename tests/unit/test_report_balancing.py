"""Balances: the dialogs of each broker instance beside an even share, and whether they are fair."""

from __future__ import annotations

import pytest

from routing.engines.traffic_tables import BalancedTarget
from routing.views.page.facts import BalancedInstance, NeverPicked
from routing.views.report.dialog_balance import ChoiceScope, InstanceChoice, find_balances, spans_of

S = ChoiceScope("one", "Sales", "S")


def choice(
    *ids: str, scope: ChoiceScope = S, bounds: tuple[int | None, int | None] = (None, None)
) -> InstanceChoice:
    return InstanceChoice(scope, bounds, {broker: f"{broker}.db" for broker in ids}, ())


def dialogs(scope: ChoiceScope = S, **counts: int) -> dict[BalancedTarget, int]:
    return {BalancedTarget(*scope, broker): count for broker, count in counts.items()}


def test_each_id_has_its_dialogs_and_the_expected_number() -> None:
    left_out = NeverPicked("c", "R", "EXPIRED", "it expired")
    choice_of_two = InstanceChoice(S, (10, None), {"a": "one.db", "b": None}, (left_out,))
    [balance] = find_balances([choice_of_two], dialogs(a=12, b=8))
    assert (balance.instance, balance.database, balance.service) == ("one", "Sales", "S")
    assert (balance.since, balance.until, balance.never) == (10, None, (left_out,))
    assert balance.picks == (
        BalancedInstance("a", "one.db", 12, 10.0, 6, 14),
        BalancedInstance("b", None, 8, 10.0, 6, 14),
    )
    # 1.96 standard deviations of 2.236 dialogs.
    assert (balance.is_fair, balance.why_no_band) == (True, None)


def test_an_id_without_dialogs_is_counted() -> None:
    [balance] = find_balances([choice("a", "b")], dialogs(a=20))
    assert [(pick.broker_instance, pick.dialogs) for pick in balance.picks] == [("a", 20), ("b", 0)]
    assert balance.is_fair is False


def test_dialogs_count_where_they_are_balanced() -> None:
    other = ChoiceScope("one", "msdb", "S")
    counted = {**dialogs(a=10, b=10), **dialogs(other, a=3, b=4)}
    balances = find_balances([choice("a", "b"), choice("a", "b", scope=other)], counted)
    picks = {one.database: [pick.dialogs for pick in one.picks] for one in balances}
    assert picks == {"Sales": [10, 10], "msdb": [3, 4]}


# Why there is no band: the ids that compete, the dialogs of each, the words.
WITHOUT_BAND: list[tuple[tuple[str, ...], dict[str, int], str]] = [
    ((), {}, "no broker instance has dialogs that can be counted"),
    (("a",), {"a": 100}, "only one broker instance has dialogs that can be counted"),
    (("a", "b"), {}, "no dialog was balanced in this time"),
    (("a", "b"), {"a": 1}, "1 dialog is too few for 2 broker instances, at least 5 for each are needed"),
    (("a", "b"), {"a": 9}, "9 dialogs are too few for 2 broker instances, at least 5 for each are needed"),
    (
        ("a", "b"),
        {"a": 50, "b": 40, "z": 1},
        "dialogs got broker instances that do not compete by these routes: others were valid then",
    ),
]


@pytest.mark.parametrize(("ids", "counts", "words"), WITHOUT_BAND)
def test_shares_without_a_band_have_a_reason(ids: tuple[str, ...], counts: dict[str, int], words: str) -> None:
    [balance] = find_balances([choice(*ids)], dialogs(S, **counts))
    assert (balance.is_fair, balance.why_no_band) == (None, words)
    assert {(pick.low, pick.high, pick.is_fair) for pick in balance.picks} <= {(None, None, None)}


# By a table of the normal distribution; with three ids there are three bands: 2.394 standard deviations.
@pytest.mark.parametrize(
    ("counts", "low", "high", "is_fair"),
    [
        ({"a": 9, "b": 1}, 2, 8, False),
        ({"a": 5, "b": 5}, 2, 8, True),
        ({"a": 59, "b": 41}, 41, 59, True),
        ({"a": 60, "b": 40}, 41, 59, False),
        ({"a": 12, "b": 20, "c": 28}, 12, 28, True),
        ({"a": 11, "b": 21, "c": 28}, 12, 28, False),
        ({"a": 500_979, "b": 499_021}, 499_021, 500_979, True),
        ({"a": 500_980, "b": 499_020}, 499_021, 500_979, False),
    ],
)
def test_bands_depend_on_the_number_of_dialogs(counts: dict[str, int], low: int, high: int, is_fair: bool) -> None:
    [balance] = find_balances([choice(*counts)], dialogs(S, **counts))
    assert {(pick.low, pick.high) for pick in balance.picks} == {(low, high)}
    assert balance.is_fair is is_fair


def test_an_id_that_was_picked_and_does_not_compete_is_shown() -> None:
    [balance] = find_balances([choice("a", "b")], dialogs(a=50, b=40, z=1))
    assert balance.picks[-1] == BalancedInstance("z", None, 1, 0.0, None, None)
    assert balance.picks[0].expected == 45.0


def test_dialogs_of_a_returning_id_do_not_count() -> None:
    back = NeverPicked("z", "R", "COMES_BACK", "its address is this very instance")
    [balance] = find_balances(
        [InstanceChoice(S, (None, None), {"a": None, "b": None}, (back,))], dialogs(a=60, b=40, z=7)
    )
    assert [(pick.broker_instance, pick.dialogs, pick.expected) for pick in balance.picks] == [
        ("a", 60, 50.0),
        ("b", 40, 50.0),
    ]
    assert balance.is_fair is False


def test_bands_are_wider_the_more_of_them_there_are() -> None:
    uneven, even, few = ChoiceScope("x", "d", "S"), ChoiceScope("y", "d", "S"), ChoiceScope("z", "d", "S")
    choices = [choice("a", "b", scope=few), choice("a", "b", scope=even), choice("a", "b", "c", scope=uneven)]
    counted = {**dialogs(few, a=1), **dialogs(even, a=60, b=40), **dialogs(uneven, a=10, b=20, c=30)}
    balances = find_balances(choices, counted)
    # The unfair ones come first, those without a band last.
    assert [(one.instance, one.is_fair) for one in balances] == [("x", False), ("y", True), ("z", None)]
    # One band for two ids and three for three ids: 2.498 standard deviations.
    assert [(one.picks[0].low, one.picks[0].high) for one in balances] == [(11, 29), (38, 62), (None, None)]


def test_each_scope_has_its_span_of_time() -> None:
    assert spans_of([choice("a", "b", bounds=(5, None))]) == {("one", "Sales", "S"): (5, None)}
