"""Balances: the dialogs of each broker instance beside what chance lets expect, tested where it can be told."""

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


def test_each_id_has_its_dialogs_and_what_was_to_be_expected() -> None:
    left_out = NeverPicked("c", "R", "EXPIRED", "it expired")
    choice_of_two = InstanceChoice(S, (10, None), {"a": "one.db", "b": None}, (left_out,))
    [found] = find_balances([choice_of_two], dialogs(a=12, b=8))
    assert (found.instance, found.database, found.service) == ("one", "Sales", "S")
    assert (found.since, found.until, found.never) == (10, None, (left_out,))
    assert found.picks == (
        BalancedInstance("a", "one.db", 12, 10.0, 6.0, 14.0),
        BalancedInstance("b", None, 8, 10.0, 6.0, 14.0),
    )
    # Chi-square 0.8 with one degree of freedom.
    assert found.p_value == pytest.approx(0.371093, rel=1e-5)
    assert found.no_p_value is None


def test_an_id_that_got_nothing_is_counted() -> None:
    [found] = find_balances([choice("a", "b")], dialogs(a=20))
    assert [(pick.broker_instance, pick.dialogs) for pick in found.picks] == [("a", 20), ("b", 0)]
    assert found.p_value == pytest.approx(7.74422e-6, rel=1e-5)


def test_dialogs_count_where_they_are_shared_out() -> None:
    other = ChoiceScope("one", "msdb", "S")
    counted = {**dialogs(a=10, b=10), **dialogs(other, a=3, b=4)}
    found = find_balances([choice("a", "b"), choice("a", "b", scope=other)], counted)
    picks = {one.database: [pick.dialogs for pick in one.picks] for one in found}
    assert picks == {"Sales": [10, 10], "msdb": [3, 4]}


# Why chance cannot be asked: the ids that compete, the dialogs of each, the words.
UNTESTED: list[tuple[tuple[str, ...], dict[str, int], str]] = [
    ((), {}, "no broker instance has dialogs that can be counted"),
    (("a",), {"a": 100}, "one broker instance alone has dialogs that can be counted"),
    (("a", "b"), {}, "no dialog was shared out in this time"),
    (("a", "b"), {"a": 1}, "1 dialog is too few for 2 broker instances: it takes 5 for each"),
    (("a", "b"), {"a": 9}, "9 dialogs are too few for 2 broker instances: it takes 5 for each"),
    (
        ("a", "b"),
        {"a": 50, "b": 40, "z": 1},
        "dialogs got broker instances that do not compete by these routes: others were in force then",
    ),
]


@pytest.mark.parametrize(("ids", "counts", "words"), UNTESTED)
def test_no_p_value_where_none_can_be(ids: tuple[str, ...], counts: dict[str, int], words: str) -> None:
    [found] = find_balances([choice(*ids)], dialogs(S, **counts))
    assert (found.p_value, found.no_p_value) == (None, words)


def test_the_fewest_dialogs_that_are_tested() -> None:
    [found] = find_balances([choice("a", "b")], dialogs(a=9, b=1))
    assert found.p_value == pytest.approx(0.011412, rel=1e-4)


def test_an_id_that_was_picked_and_does_not_compete_is_shown() -> None:
    [found] = find_balances([choice("a", "b")], dialogs(a=50, b=40, z=1))
    assert found.picks[-1] == BalancedInstance("z", None, 1, 0.0, 0.0, 0.0)
    assert found.picks[0].expected == 45.0


def test_dialogs_of_an_id_that_comes_back_do_not_count() -> None:
    back = NeverPicked("z", "R", "COMES_BACK", "its address is this very instance")
    [found] = find_balances(
        [InstanceChoice(S, (None, None), {"a": None, "b": None}, (back,))], dialogs(a=60, b=40, z=7)
    )
    assert [(pick.broker_instance, pick.dialogs, pick.expected) for pick in found.picks] == [
        ("a", 60, 50.0),
        ("b", 40, 50.0),
    ]
    assert found.p_value == pytest.approx(0.0455003, rel=1e-5)


def test_p_values_are_corrected_for_the_services_that_are_tested_alone() -> None:
    # Two degrees of freedom, chi-square 10: exp(-5); and 60 to 40: 0.0455. A third has too few dialogs.
    uneven, even, few = ChoiceScope("x", "d", "S"), ChoiceScope("y", "d", "S"), ChoiceScope("z", "d", "S")
    choices = [choice("a", "b", scope=few), choice("a", "b", scope=even), choice("a", "b", "c", scope=uneven)]
    counted = {
        **dialogs(few, a=1),
        **dialogs(even, a=60, b=40),
        **dialogs(uneven, a=10, b=20, c=30),
    }
    found = find_balances(choices, counted)
    # What chance explains least comes first, what is not tested last.
    assert [one.instance for one in found] == ["x", "y", "z"]
    assert [one.p_value for one in found] == [
        pytest.approx(2 * 0.006737947, rel=1e-6),
        pytest.approx(0.0455003, rel=1e-5),
        None,
    ]


def test_the_time_of_each_scope_is_told_to_who_counts() -> None:
    assert spans_of([choice("a", "b", bounds=(5, None))]) == {("one", "Sales", "S"): (5, None)}
