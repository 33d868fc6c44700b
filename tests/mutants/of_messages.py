"""Mutants of Spark's work on each message: its dialog, its request and its hops."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

# The worked cases first: they see most breaks. The random estates are few, and at one decision time.
RESOLVED = (
    "tests/spark/test_cases.py",
    "tests/spark/test_random_estates.py::test_order_and_layout_do_not_matter_at_one_time[0]",
)
ASKED = ("tests/spark/test_askers.py",)

MUTANTS = (
    Mutant(
        name="spark-request-pends-at-its-end",
        rule="5: a request is pending until ended_at, that moment not included",
        file="routing/messages/results.py",
        before='(t < request["ended_at"])',
        after='(t <= request["ended_at"])',
        tests=RESOLVED,
    ),
    Mutant(
        name="spark-conversation-goes-on",
        rule="D10: a conversation waits as a whole for its own request",
        file="routing/messages/results.py",
        before='F.col("opens").isNotNull() | waits',
        after='F.col("opens").isNotNull()',
        tests=ASKED,
    ),
    Mutant(
        name="spark-waiting-asks-in-msdb",
        rule="D10: a message that waits does not go on to msdb",
        file="routing/messages/openers.py",
        before='.where(~F.col("requested"))',
        after='.where(F.col("requested").isNotNull())',
        tests=ASKED,
    ),
    Mutant(
        name="spark-rows-of-requests-multiply",
        rule="D10: a conversation that has asked several times keeps its rows",
        file="routing/messages/openers.py",
        before='both.groupBy(*_SCOPE, *_ENDPOINT).agg(F.collect_list("request").alias("requests"))',
        after='both.withColumn("requests", F.array("request")).drop("request")',
        tests=ASKED,
    ),
    Mutant(
        name="spark-every-equal-row-opens",
        rule="D10: of equal rows the smallest end opens a request on record again",
        file="routing/messages/openers.py",
        before="is_smallest = (place == 0) | (_position(last) < _position(at))",
        after="is_smallest = (place == 0) | last.isNotNull()",
        tests=ASKED,
    ),
    Mutant(
        name="spark-any-text-is-a-conversation",
        rule="D10: an id that is no GUID does not tell whose a request is",
        file="routing/messages/openers.py",
        before='spark_forms.is_guid(F.col("conversation_id")) & F.col("is_initiator")',
        after='F.col("is_initiator")',
        tests=ASKED,
    ),
    Mutant(
        name="spark-opened-again-for-ever",
        rule="5: a request on record that is opened again ends when it ended",
        file="routing/messages/openers.py",
        before='"ended_at": F.when(F.col("is_own"), last["ended_at"])',
        after='"ended_at": F.lit(None).cast("timestamp")',
        tests=ASKED,
    ),
    Mutant(
        name="spark-own-request-is-pending",
        rule="5: a message does not find its own request on record pending",
        file="routing/messages/openers.py",
        before='F.when(F.col("is_own"), last["open_before"]).otherwise(last["open_after"])',
        after='last["open_after"]',
        tests=ASKED,
    ),
    Mutant(
        name="spark-last-request-alone-pends",
        rule="5: any request that was made before is found pending, not the last one alone",
        file="routing/messages/openers.py",
        before='F.max(open_until).over(so_far).alias("open_after")',
        after='open_until.alias("open_after")',
        tests=ASKED,
    ),
    Mutant(
        name="spark-search-stops-early",
        rule="5: the last request before a message is found among as many as there are",
        file="routing/messages/openers.py",
        before="F.length(F.bin(F.size(ordered))) - 1",
        after="F.lit(0)",
        tests=ASKED,
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
