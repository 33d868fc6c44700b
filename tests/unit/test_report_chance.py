"""What chance lets expect: bands beside binomial tables, p-values beside published ones, Holm's correction."""

from __future__ import annotations

from math import sqrt

import pytest

from routing.views.report.dialog_balance import band, correct, p_value

# dialogs, ids → from, to; by printed tables of the binomial distribution.
BANDS = [
    (0, 1, 0, 0),
    (0, 3, 0, 0),
    (7, 1, 7, 7),
    # Of one throw either end has a probability of 1/2, of three 1/8, of five 1/32 = 0.031: nothing is left out.
    (1, 2, 0, 1),
    (3, 2, 0, 3),
    (5, 2, 0, 5),
    # Of six 1/64 = 0.016 at either end: these go.
    (6, 2, 1, 5),
    # P(X <= 1) = 0.0107, P(X <= 2) = 0.0547.
    (10, 2, 2, 8),
    # P(X <= 5) = 0.0207, P(X <= 6) = 0.0577.
    (20, 2, 6, 14),
    # P(X <= 1) = 0.0243, P(X <= 2) = 0.0913; P(X <= 8) = 0.9591, P(X <= 9) = 0.9861.
    (20, 4, 2, 9),
    # P(X <= 3) = 0.8791, P(X <= 4) = 0.9672, P(X <= 5) = 0.9936; P(X = 0) = 0.1074.
    (10, 5, 0, 5),
    # P(X <= 39) = 0.0176, P(X <= 40) = 0.0284.
    (100, 2, 40, 60),
]


@pytest.mark.parametrize(("dialogs", "ids", "low", "high"), BANDS)
def test_bands(dialogs: int, ids: int, low: int, high: int) -> None:
    assert band(dialogs, ids) == (low, high)


@pytest.mark.parametrize(("dialogs", "ids"), [(10_000_000, 2), (10_000_000, 1_000), (1_000_000, 7)])
def test_a_band_of_many_dialogs_is_that_of_the_normal_distribution(dialogs: int, ids: int) -> None:
    low, high = band(dialogs, ids)
    half = 1.959964 * sqrt(dialogs / ids * (1 - 1 / ids))
    assert low == pytest.approx(dialogs / ids - half, abs=1.5)
    assert high == pytest.approx(dialogs / ids + half, abs=1.5)


# Degrees of freedom, the probability at the head of the column, the table's value of chi-square.
TABLE = [
    (1, 0.05, 3.841459),
    (1, 0.01, 6.634897),
    (2, 0.05, 5.991465),
    (3, 0.95, 0.351846),
    (5, 0.05, 11.070498),
    (10, 0.05, 18.307038),
    (10, 0.001, 29.588298),
    (30, 0.50, 29.336032),
    (100, 0.05, 124.342113),
]


@pytest.mark.parametrize(("freedom", "probability", "distance"), TABLE)
def test_p_values_are_those_of_the_printed_table(freedom: int, probability: float, distance: float) -> None:
    # One id has so many dialogs more and one so many fewer that they are at this distance.
    each = 10**12
    more = round(sqrt(distance * each / 2))
    counts = [each + more, each - more, *[each] * (freedom - 1)]
    assert p_value(counts) == pytest.approx(probability, rel=1e-5)


def test_p_values_of_known_examples() -> None:
    # A die that falls 5, 8, 9, 8, 10 and 20 times on its sides: chi-square is 13.4.
    assert p_value([5, 8, 9, 8, 10, 20]) == pytest.approx(0.019905, rel=1e-4)
    # 60 heads of 100: two standard deviations.
    assert p_value([60, 40]) == pytest.approx(0.0455003, rel=1e-5)
    # Two degrees of freedom, chi-square 10: exp(-5).
    assert p_value([10, 20, 30]) == pytest.approx(0.006737947, rel=1e-6)
    assert p_value([50, 50]) == 1.0
    assert p_value([1_000_000, 2_000_000]) == 0.0


def test_p_values_are_corrected_for_their_number() -> None:
    assert correct([]) == []
    assert correct([0.03]) == [0.03]
    # 0.005 × 4; 0.01 × 3; 0.03 × 2; 0.04 × 1, but no less than the one before.
    assert correct([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct([0.6, 0.9, 0.5]) == [1.0, 1.0, 1.0]
