"""Ways to get wrong what Spark does with each message: its dialog, its request, its hops."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

# The worked cases first: they see most breaks. The random estates are few, and at one decision time.
RESOLVED = (
    "tests/spark/test_cases.py",
    "tests/spark/test_random_estates.py::test_order_and_layout_do_not_matter_at_one_time[0]",
)

MUTANTS = (
    Mutant(
        name="spark-request-pends-at-its-end",
        rule="5: a request is pending until ended_at, that moment not included",
        file="routing/messages/openers.py",
        before='(t < request["ended_at"])',
        after='(t <= request["ended_at"])',
        tests=RESOLVED,
    ),
    Mutant(
        name="spark-acknowledged-too-late",
        rule="0: a dialog is bound from acknowledged_at on, that moment included",
        file="routing/messages/keying.py",
        before='F.col("acknowledged_at") <= t',
        after='F.col("acknowledged_at") < t',
        tests=RESOLVED,
    ),
    Mutant(
        name="spark-one-hop-too-many",
        rule="3: a message with no hops left is not forwarded",
        file="routing/messages/results.py",
        before='F.col("hops_remaining") <= 0',
        after='F.col("hops_remaining") < 0',
        tests=RESOLVED,
    ),
)
