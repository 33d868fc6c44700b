"""Messages × plan → message paths: narrow, and no shuffle of messages as long as all sides can be broadcast."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.job import ResolveJob
from routing.messages.results import add_requests, cut
from routing.plan.rows import PATH, READS_ADDRESS
from routing.rules.path_rows import EXPIRED, REQUESTED, FirstHop, HopRow, PathRow
from routing.schemas import HOPS, MESSAGE_PATHS
from routing.tables import spark_forms
from routing.tables.declared_columns import in_shape
from routing.terms import MSDB, Ending


def message_paths(job: ResolveJob) -> DataFrame:
    """Return the rows of ``message_paths``, one for each message that is not rejected.

    ``job`` as `compiling.compile_messages` makes it by `path_keying.OF_ESTATE`. The plan's path stands except for
    two things that are a message's own: a request that it waits for (step 4), and the end of its dialog, which
    comes before all else. What cannot happen to these messages is left out.
    """
    uses, dialogs, requests = job.plan.uses, job.source.dialogs, job.requests
    messages = cut(job.choices)
    if requests is not None:
        messages = add_requests(messages, requests, in_msdb=uses.asks_msdb)
    messages = messages.withColumn("path", _by_hops(F.col("choice.paths")))
    path, scope = F.col("path"), F.coalesce("database_name", F.lit(MSDB))
    if requests is not None:
        here, in_msdb = F.col("requested"), F.col("requested_in_msdb")
        asked = _of_its_own(REQUESTED, F.when(here, scope).otherwise(MSDB))
        path = F.when(here | in_msdb, asked).otherwise(path)
    if dialogs is not None and dialogs.end:
        path = F.when(F.col("is_expired"), _of_its_own(EXPIRED, scope)).otherwise(path)
    # A column of its own, so that the code made for each row asks once, not for each value.
    messages, path = messages.withColumn("way", path), F.col("way")
    values = {name: path[name] for name in PathRow._fields}
    if uses.reads_addresses:
        in_name = spark_forms.leading_address(F.col("to_service_name"))
        messages = messages.withColumn("in_name", F.when(path[READS_ADDRESS], in_name))
        values = _with_address(values, path[READS_ADDRESS], spark_forms.empty_as_null(F.col("in_name")))
    values["from_service_name"] = spark_forms.empty_as_null(F.col("from_service_name"))
    return in_shape(messages, MESSAGE_PATHS, values)


def _by_hops(paths: Column) -> Column:
    """Return the path of a message by the hops that it has left: the last is that of all that have more."""
    most = F.size(paths) - 1
    left = F.greatest(F.coalesce("hops_remaining", most), F.lit(0))
    return F.get(paths, F.least(left, most).cast("int"))


def _with_address(values: dict[str, Column], reads: Column, address: Column) -> dict[str, Column]:
    """Return the values with the address in the message's own service name at the last hop."""
    hops = values["hops"]
    last = F.element_at(hops, -1).withField("address", address)
    whole = F.concat(F.slice(hops, F.lit(1), F.size(hops) - 1), F.array(last))
    leaves = reads & (values["outcome"] == str(Ending.LEFT_ESTATE))
    return {
        **values,
        "hops": F.when(reads, whole).otherwise(hops),
        "final_address": F.when(leaves, address).otherwise(values["final_address"]),
    }


def _of_its_own(first: FirstHop, scope: Column) -> Column:
    """Return the path of a message that does not go the plan's way, but ends at its first hop."""
    fixed = {"instance_name": F.col("instance_name"), "scope": scope, "matching_step": _literal(first.step)}
    fixed |= {"outcome": _literal(str(first.ending)), "reason": _literal(str(first.reason))}
    hop = F.struct(*(fixed.get(name, F.lit(None)).alias(name) for name in HopRow._fields))
    values = {
        "outcome": fixed["outcome"],
        "reason": fixed["reason"],
        "final_instance_name": fixed["instance_name"],
        "hops": F.array(hop).cast(str(HOPS)),
        "ways_agree": F.lit(True),
        "multiple_targets": F.lit(False),
    }
    return F.struct(*(values.get(name, F.lit(None)).alias(name) for name in PATH.names))


def _literal(value: str | int | None) -> Column:
    return F.lit(None if value is None else int(value) if isinstance(value, int) else value)
