"""Rule book, section 5: which messages open a request for a route, and what they ask."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.job import Job
from routing.messages.results import add_openers
from routing.rules.requesting import escaped_attribute
from routing.schemas import NEW_ROUTE_REQUESTS
from routing.storage.conform import no_rows
from routing.storage.joining import Side
from routing.terms import MSDB

_OPENER = ("instance_name", "ask_database", "to_service_name", "decided_at", "message_id")
# What XML 1.0 does not allow as a character; Spark's text holds no lone surrogates.
_NOT_XML = "[^\\x{9}\\x{A}\\x{D}\\x{20}-\\x{D7FF}\\x{E000}-\\x{FFFD}\\x{10000}-\\x{10FFFF}]"


def missing_route(service_name: Column, namespace: str) -> Column:
    """The MissingRoute message for a service (D7)."""
    allowed = F.regexp_replace(service_name, _NOT_XML, "\ufffd")
    return F.concat(
        F.lit(f'<MissingRoute xmlns="{escaped_attribute(namespace)}"><SERVICE_NAME>'),
        F.replace(
            F.replace(F.replace(allowed, F.lit("&"), F.lit("&amp;")), F.lit("<"), F.lit("&lt;")),
            F.lit(">"),
            F.lit("&gt;"),
        ),
        F.lit("</SERVICE_NAME></MissingRoute>"),
    )


def find_openers(job: Job) -> Side:
    """Find the messages that open a request, now; only where a message may reach step 4.

    As many as the services that messages invent.
    """
    record, uses, chosen = job.source.lookups.requests, job.plan.uses, job.choices
    on_record = None if record is None else job.keep("the route requests on record", _by_service(record))
    what = "the messages that open a route request"
    here = asking_in_scope(chosen)
    if not uses.asks_msdb:
        return job.keep(what, openers(here, on_record))
    if not uses.asks_in_databases:
        return job.keep(what, openers(here.unionByName(asking_in_msdb(chosen)), on_record))
    # A message that opens a request in its own scope does not come back to ask in msdb as well, so the databases'
    # requests are settled before those of msdb.
    is_msdb = F.col("ask_database") == MSDB
    in_databases = job.keep(f"{what} in a database", openers(here.where(~is_msdb), on_record))
    settled = add_openers(chosen, in_databases, in_msdb=False).where(~F.col("opens"))
    in_msdb = openers(here.where(is_msdb).unionByName(asking_in_msdb(settled)), on_record)
    return job.keep(what, in_databases.rows.unionByName(in_msdb))


def _by_service(requests: DataFrame) -> DataFrame:
    """Requests on record, a row for each scope and service: requests is an array of (time, id, end)."""
    request = F.struct("requested_at", "message_id", "ended_at")
    return requests.groupBy("instance_name", "database_name", F.col("service_name").alias("service")).agg(
        F.collect_list(request).alias("requests")
    )


def openers(asking: DataFrame, on_record: Side | None) -> DataFrame:
    """The messages that open a request, of those that reach step 4.

    ``asking`` has instance_name, ask_database, to_service_name, decided_at and message_id, a row for each
    message that meets step 4 in that scope; ``on_record`` has the rows of `_by_service`. One aggregate
    over the asking messages; its rows are as many as the scopes and services that reach step 4 (messages may
    invent services) and the requests on record. Returns distinct rows of the same five columns.
    """
    scope = list(_OPENER[:3])
    position = F.struct("decided_at", "message_id")
    if on_record is None:
        asked = asking.withColumns({"is_own": F.lit(False), "is_pending": F.lit(False)})
    else:
        record = on_record.with_hint().withColumnsRenamed(
            {"database_name": "ask_database", "service": "to_service_name"}
        )
        requests = F.coalesce("requests", F.array().cast(record.schema["requests"].dataType))
        # Requests are grouped by scope and service, so the join keeps the number of rows.
        apart = asking.withColumn("ask_database", _of_a_method_before(F.col("ask_database")))
        asked = apart.join(record, scope, how="left").withColumns(
            {"is_own": F.exists(requests, _is_own), "is_pending": F.exists(requests, _is_pending)}
        )
    own = F.when(F.col("is_own"), position)
    # collect_set keeps this an object hash aggregate: min of a struct alone would sort the messages.
    first = (
        asked.where(~F.col("is_pending"))
        .groupBy(*scope)
        .agg(F.min(F.when(~F.col("is_own"), position)).alias("first"), F.collect_set(own).alias("own"))
    )
    before = F.filter("own", lambda at: F.col("first").isNull() | (at < F.col("first")))
    opened = F.concat(before, F.array_compact(F.array("first")))
    return first.select(*scope, F.explode(opened).alias("at")).select(*scope, "at.decided_at", "at.message_id")


def _of_a_method_before(text: Column) -> Column:
    """Return a text as it is, and have Spark end the method that it makes of a row where this is asked for.

    Java compiles 8,000 bytes a method at most. Spark compiles no function that takes a function, but calls it,
    here for the rows that ask alone. `results.cut` is of no use here: a kept frame with it is not found again.
    """
    return F.get(F.transform(F.array(text), lambda same: same), F.lit(0))


def _is_own(request: Column) -> Column:
    return (request["requested_at"] == F.col("decided_at")) & (request["message_id"] == F.col("message_id"))


def _is_pending(request: Column) -> Column:
    """(requested_at, message_id) before the message's, and not ended at its time."""
    t = F.col("decided_at")
    at_once = (request["requested_at"] == t) & (request["message_id"] < F.col("message_id"))
    earlier = (request["requested_at"] < t) | at_once
    return earlier & (request["ended_at"].isNull() | (t < request["ended_at"]))


def asking_in_scope(resolved: DataFrame) -> DataFrame:
    """The messages that meet step 4 in the scope they start in."""
    database = F.coalesce("database_name", F.lit(MSDB))
    return _asking(resolved.where(F.col("choice.asks") & ~F.col("is_expired")), database)


def asking_in_msdb(resolved: DataFrame) -> DataFrame:
    """The messages that came back to their instance and meet step 4 in msdb."""
    return _asking(resolved.where(F.col("choice.asks_msdb") & ~F.col("is_expired")), F.lit(MSDB))


def _asking(messages: DataFrame, database: Column) -> DataFrame:
    return messages.select(
        "instance_name", database.alias("ask_database"), "to_service_name", "decided_at", "message_id"
    )


def new_route_requests(job: Job) -> DataFrame:
    """The rows of ``new_route_requests``: one for each opened request."""
    if job.openers is None:
        return no_rows(job.source.messages.sparkSession, NEW_ROUTE_REQUESTS)
    namespace = job.options.missing_route_namespace
    return job.openers.rows.select(
        "instance_name",
        F.col("ask_database").alias("database_name"),
        F.col("to_service_name").alias("service_name"),
        F.col("decided_at").alias("requested_at"),
        "message_id",
        missing_route(F.col("to_service_name"), namespace).alias("body"),
        F.lit(job.options.run_id).alias("run_id"),
    )
