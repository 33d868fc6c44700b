"""What chance does where each dialog gets one of several broker ids, each as likely as the others."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log, log1p, sqrt

FEWEST = 5
"""So many of each must be expected at least, or the chi-square distribution says nothing of the counts."""
_TAIL = 0.025
_FAR = 10
"""So many standard deviations below the mean less than 1e-10 of all choices end."""


def band(dialogs: int, ids: int) -> tuple[int, int]:
    """Return the least and the most dialogs of an id in at least 95 of 100 fair choices among so many ids.

    These are the binomial distribution's own quantiles, at few dialogs as at many: less than the lower bound, and
    more than the upper one, come each with a probability of 2.5 % at most. The probabilities are summed one after
    another, from far below the mean, so that it takes some tens of square roots of ``dialogs``.
    """
    if ids == 1 or not dialogs:
        return dialogs, dialogs
    share = 1 / ids
    mean = dialogs * share
    low = high = max(0, int(mean - _FAR * sqrt(mean * (1 - share))))
    probability = _probability(low, dialogs, share)
    odds, so_far = share / (1 - share), probability
    is_low = so_far > _TAIL
    while so_far < 1 - _TAIL and high < dialogs:
        probability *= (dialogs - high) / (high + 1) * odds
        high += 1
        so_far += probability
        if not is_low:
            low, is_low = high, so_far > _TAIL
    return low, high


def _probability(count: int, dialogs: int, share: float) -> float:
    """Return the probability that an id with a share gets this very number of all dialogs."""
    log_arrangements = lgamma(dialogs + 1) - lgamma(count + 1) - lgamma(dialogs - count + 1)
    return exp(log_arrangements + count * log(share) + (dialogs - count) * log1p(-share))


def p_value(counts: Sequence[int]) -> float:
    """Return the probability that fair choices are at least as uneven as these counts: Pearson's chi-square test.

    There are two counts at least, and `FEWEST` expected of each. The package mpmath is needed.
    """
    import mpmath

    expected = sum(counts) / len(counts)
    distance = sum((count - expected) ** 2 for count in counts) / expected
    # The chi-square distribution's upper tail is a regularized incomplete gamma function.
    return float(mpmath.gammainc((len(counts) - 1) / 2, distance / 2, regularized=True))


def correct(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of several tests, in the order given, each corrected for their number by Holm's method.

    Below 0.05 then stands by mere chance any of them in 5 of 100 cases at most, however many they are.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for place, which in enumerate(sorted(range(len(p_values)), key=lambda which: p_values[which])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[which]))
        corrected[which] = least
    return corrected
