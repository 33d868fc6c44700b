"""Find the messages that open a request for a route or wait for one, and their requests (rule book, section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.messages import keying
from routing.messages.results import add_requests
from routing.messages.route_plan import RequestSides, RoutePlan
from routing.rules.requesting import contract_of, escaped_attribute
from routing.schemas import NEW_ROUTE_REQUESTS
from routing.tables import spark_forms
from routing.tables.cached_frames import JoinSide, look_up
from routing.tables.spark_forms import no_rows
from routing.terms import MSDB

_SCOPE = ("instance_name", "ask_database", "to_service_name")
_ENDPOINT = ("conversation_id", "is_initiator")
_POSITION = ("requested_at", "message_id")
# The least number of requests in a block, so that most services have one block.
_BLOCK = 64
_FOR_EVER = 2**63 - 1
# The characters that XML 1.0 forbids. Lone surrogates are missing because Spark's text has none.
_NOT_XML = "[^\\x{9}\\x{A}\\x{D}\\x{20}-\\x{D7FF}\\x{E000}-\\x{FFFD}\\x{10000}-\\x{10FFFF}]"


def missing_route(service_name: Column, namespace: str) -> Column:
    """Return the MissingRoute message for a service (D7)."""
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


def find_requests(plan: RoutePlan) -> RequestSides:
    """Compute the requests that messages open or wait for. Call it only if a message may reach step 4.

    Their number is that of the services without a route in messages, plus the requests on record.
    """
    record, uses, chosen = plan.source.lookups.requests, plan.uses, plan.choices
    on_record = None if record is None else plan.keep("the route requests on record", order_requests(record))
    in_scope = asking_in_scope(chosen)
    if not uses.asks_msdb:
        return _request_sides(plan, openers(in_scope, on_record))
    if not uses.asks_in_databases:
        return _request_sides(plan, openers(in_scope.unionByName(asking_in_msdb(chosen)), on_record))
    # A message that waits in its own scope does not come back to ask in msdb as well, so the requests in databases
    # are found before those in msdb.
    is_msdb = F.col("ask_database") == MSDB
    in_databases = _request_sides(plan, openers(in_scope.where(~is_msdb), on_record), " in a database")
    coming_back = chosen.where(F.col("choice.asks_msdb") & ~F.col("is_expired"))
    apart = coming_back.withColumn("to_service_name", _of_a_method_before(F.col("to_service_name")))
    going_on = add_requests(apart, in_databases, in_msdb=False).where(~F.col("requested"))
    in_msdb = openers(in_scope.where(is_msdb).unionByName(asking_in_msdb(going_on)), on_record)
    return _request_sides(plan, in_databases.openers.rows.unionByName(in_msdb))


def find_waiting(plan: RoutePlan, requests: RequestSides) -> JoinSide:
    """Return the messages that wait for a requested route, for `keying.add_waiting`.

    Only their names, ids and times are joined with the requests.
    """
    asking = plan.choices.where(F.col("choice.asks") | F.col("choice.asks_msdb"))
    apart = asking.withColumn("to_service_name", _of_a_method_before(F.col("to_service_name")))
    marked = add_requests(apart, requests, in_msdb=plan.uses.asks_msdb)
    waiting = marked.where(F.col("requested") | F.col("requested_in_msdb"))
    return plan.keep("the messages that wait for a route", keying.select_waiting(waiting))


def _request_sides(plan: RoutePlan, opened: DataFrame, where: str = "") -> RequestSides:
    """Return the requests of `openers` and those on record, as sides of joins with messages."""
    openers_side = plan.keep(f"the messages that open a route request{where}", opened)
    record = plan.source.lookups.requests
    if record is None:
        # Without a record, a scope and service have one request, and so does an endpoint.
        own_requests = (
            _opened_requests(openers_side.rows).withColumn("requests", F.array("request")).drop("request")
        )
        return RequestSides(openers_side, replace(openers_side, rows=own_requests))
    # An endpoint has one row for all its requests for a service, so the join keeps the number of messages.
    both = _opened_requests(openers_side.rows).unionByName(_endpoint_requests(record))
    grouped = both.groupBy(*_SCOPE, *_ENDPOINT).agg(F.collect_list("request").alias("requests"))
    return RequestSides(openers_side, plan.keep(f"the route requests by conversation{where}", grouped))


def _opened_requests(opened: DataFrame) -> DataFrame:
    """Return the requests of `openers`, each with the endpoint that opens it."""
    request = F.struct(F.col("decided_at").alias("requested_at"), "message_id", "ended_at")
    return opened.select(*_SCOPE, *_ENDPOINT, request.alias("request"))


def _endpoint_requests(record: DataFrame) -> DataFrame:
    """Return the requests on record that may be pending and name their endpoint."""
    lasts = F.col("ended_at").isNull() | (F.col("requested_at") < F.col("ended_at"))
    return record.where(names_endpoint() & lasts).select(
        "instance_name",
        F.col("database_name").alias("ask_database"),
        F.col("service_name").alias("to_service_name"),
        spark_forms.conversation_id(F.col("conversation_id")).alias("conversation_id"),
        "is_initiator",
        F.struct("requested_at", "message_id", "ended_at").alias("request"),
    )


def names_endpoint() -> Column:
    """Return whether a request names its endpoint (`ConversationEndpoint.of_row`). The result is never null."""
    return F.coalesce(
        spark_forms.is_guid(F.col("conversation_id")) & F.col("is_initiator").isNotNull(), F.lit(False)
    )


def order_requests(record: DataFrame, least: int = _BLOCK) -> DataFrame:
    """Group the requests on record by scope and service, in their order and in blocks. Each block is a row.

    The size of a block is the square root of the number of a service's requests, but at least ``least``. To find
    the last request before it, a message searches two short arrays. ``requests`` is an array with these fields:

    ``at`` is (requested_at, message_id), and ``ended_at`` is null for an open request. ``open_before`` and
    ``open_after`` are the times until which the earlier requests, without or with this one, are pending. Both are
    in microseconds. Only block 0 has ``firsts``, with the ``at`` of each block's first request.
    """
    named = record.withColumnsRenamed({"database_name": "ask_database", "service_name": "to_service_name"})
    # All following steps need a service's requests in one task, so they are shuffled once.
    each = (
        named.repartition(*_SCOPE)
        .groupBy(*_SCOPE, *_POSITION)
        .agg(F.when(~F.bool_or(F.col("ended_at").isNull()), F.max("ended_at")).alias("ended_at"))
    )
    of_service = Window.partitionBy(*_SCOPE)
    in_order = of_service.orderBy(*_POSITION)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    open_until = F.coalesce(F.unix_micros("ended_at"), F.lit(_FOR_EVER))
    length = F.greatest(F.lit(least), F.ceil(F.sqrt(F.count(F.lit(1)).over(of_service))))
    request = F.struct(F.struct(*_POSITION).alias("at"), "ended_at", "open_before", "open_after")
    blocks = (
        each.select(
            *_SCOPE,
            *_POSITION,
            "ended_at",
            F.max(open_until).over(before).alias("open_before"),
            F.max(open_until).over(so_far).alias("open_after"),
            F.floor((F.row_number().over(in_order) - 1) / length).cast("int").alias("block"),
        )
        .groupBy(*_SCOPE, "block")
        .agg(F.sort_array(F.collect_list(request)).alias("requests"))
    )
    firsts = F.sort_array(F.collect_list(F.get("requests", F.lit(0))["at"]).over(of_service))
    return blocks.withColumn("firsts", F.when(F.col("block") == 0, firsts))


def _find_last_before(asking: DataFrame, on_record: JoinSide) -> DataFrame:
    """Return asking messages with ``last``, the last request that is not after them, or null.

    A service has one row with the firsts of its blocks, and one row for each block, so the joins keep the number
    of rows.
    """
    blocks = on_record.rows
    # Spark compares two structs only if their fields have the same names.
    position = F.struct(F.col("decided_at").alias("requested_at"), "message_id")
    apart = asking.withColumns({"ask_database": _of_a_method_before(F.col("ask_database")), "position": position})
    firsts = on_record.with_rows(blocks.where(F.col("firsts").isNotNull()).select(*_SCOPE, "firsts"))
    with_firsts = look_up(apart, firsts, _SCOPE)
    place = _count_up_to(F.col("firsts"), lambda first: first) - 1
    in_block = with_firsts.withColumn("block", place).drop("firsts")
    requests = on_record.with_rows(blocks.select(*_SCOPE, "block", "requests"))
    searched = look_up(in_block, requests, [*_SCOPE, "block"], optional=["block"])
    last = F.get("requests", _count_up_to(F.col("requests"), lambda request: request["at"]) - 1)
    return searched.withColumn("last", last).drop("requests", "block")


def _count_up_to(ordered: Column, position_of: Callable[[Column], Column]) -> Column:
    """Count the elements of a sorted array that are not after a message. Returns null without an array.

    This is a binary search: each step tries a power of two, highest first. A missing element is null, and so is
    its comparison.
    """

    def add(count: Column, bit: Column) -> Column:
        more = count + F.pow(F.lit(2), bit).cast("int")
        return F.when(position_of(F.get(ordered, more - 1)) <= F.col("position"), more).otherwise(count)

    highest = F.length(F.bin(F.size(ordered))) - 1
    counted = F.aggregate(F.sequence(highest, F.lit(0)), F.lit(0), add)
    return F.when(ordered.isNotNull(), counted)


def openers(asking: DataFrame, on_record: JoinSide | None) -> DataFrame:
    """Return the requests that messages open in step 4.

    ``asking`` has the columns of `_asking`, with a row for each message that reaches step 4 in that scope.
    ``on_record`` has the rows of `order_requests`. One aggregate over the asking messages gives a row for each
    scope and service in step 4 and for each request on record. The result has the same columns with ended_at,
    which is the end of a request on record that is opened again. Rows with equal (decided_at, message_id) open one
    request, of the smallest endpoint.
    """
    scope = list(_SCOPE)
    if on_record is None:
        never = F.lit(None).cast("timestamp")
        rows = asking.withColumns({"is_own": F.lit(False), "is_pending": F.lit(False), "ended_at": never})
    else:
        last = F.col("last")
        is_own = F.coalesce(last["at"] == F.col("position"), F.lit(False))
        open_until = F.when(F.col("is_own"), last["open_before"]).otherwise(last["open_after"])
        is_pending = F.coalesce(F.unix_micros("decided_at") < open_until, F.lit(False))
        rows = (
            _find_last_before(asking, on_record)
            .withColumn("is_own", is_own)
            .withColumns({"is_pending": is_pending, "ended_at": F.when(F.col("is_own"), last["ended_at"])})
        )
    at = F.struct("decided_at", "message_id", *_ENDPOINT, "ended_at")
    # Without collect_set, min of a struct would sort the messages. With it, Spark uses an object hash aggregate.
    of_scope = (
        rows.where(~F.col("is_pending"))
        .groupBy(*scope)
        .agg(
            F.min(F.when(~F.col("is_own"), at)).alias("first"),
            F.sort_array(F.collect_set(F.when(F.col("is_own"), at))).alias("own"),
        )
    )
    before = F.filter("own", _is_smallest_before_the_first)
    opened = F.concat(before, F.array_compact(F.array("first")))
    return of_scope.select(*scope, F.explode(opened).alias("at")).select(*scope, "at.*")


def _is_smallest_before_the_first(at: Column, place: Column) -> Column:
    """Return whether an endpoint reopens a request on record, because no new request is earlier.

    Of endpoints with equal positions, the smallest reopens it.
    """
    first, last = F.col("first"), F.get("own", place - 1)
    is_smallest = (place == 0) | (_position(last) < _position(at))
    return is_smallest & (first.isNull() | (_position(at) < _position(first)))


def _position(at: Column) -> Column:
    return F.struct(at["decided_at"], at["message_id"])


def _of_a_method_before(text: Column) -> Column:
    """Return a text unchanged, and make Spark start a new Java method for the following steps.

    Java compiles methods of up to 8,000 bytes. Spark calls a higher-order function instead of compiling it, here
    only for rows that ask. `results.cut` does not help, because with it Spark does not recognise a cached frame.
    """
    return F.get(F.transform(F.array(text), lambda same: same), F.lit(0))


def asking_in_scope(resolved: DataFrame) -> DataFrame:
    """Return the messages that meet step 4 in the scope they start in."""
    database = F.coalesce("database_name", F.lit(MSDB))
    return _asking(resolved.where(F.col("choice.asks") & ~F.col("is_expired")), database)


def asking_in_msdb(resolved: DataFrame) -> DataFrame:
    """Return the messages that came back to their instance and meet step 4 in msdb."""
    return _asking(resolved.where(F.col("choice.asks_msdb") & ~F.col("is_expired")), F.lit(MSDB))


def _asking(messages: DataFrame, database: Column) -> DataFrame:
    place = ("instance_name", database.alias("ask_database"), "to_service_name")
    return messages.select(*place, "decided_at", "message_id", *_ENDPOINT)


def new_route_requests(plan: RoutePlan) -> DataFrame:
    """Return the rows of ``new_route_requests``: one for each opened request."""
    if plan.requests is None:
        return no_rows(plan.source.messages.sparkSession, NEW_ROUTE_REQUESTS)
    namespace = plan.options.missing_route_namespace
    return plan.requests.openers.rows.select(
        "instance_name",
        F.col("ask_database").alias("database_name"),
        F.col("to_service_name").alias("service_name"),
        F.col("decided_at").alias("requested_at"),
        "message_id",
        *_ENDPOINT,
        F.lit(namespace).alias("message_type_name"),
        F.lit(contract_of(namespace)).alias("service_contract_name"),
        missing_route(F.col("to_service_name"), namespace).alias("body"),
        F.lit(plan.options.run_id).alias("run_id"),
    )
