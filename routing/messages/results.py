"""Resolve messages by joining them with the plan, without a shuffle if all sides can be broadcast."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages import keying, pending
from routing.messages.dialog_hash import DialogHash
from routing.messages.route_plan import TIMELINE, DecidedFrames, MessageSource, RequestSides, RoutePlan
from routing.plan.instance_plans import NAMES
from routing.plan.key_rows import CHOICE, KEY, READS_ADDRESS
from routing.rules.resolving import VERDICT_COLUMNS
from routing.schemas import REJECTED_MESSAGES, RESOLVED_ROUTES
from routing.tables import spark_forms
from routing.tables.cached_frames import JoinSide, look_up, side_of
from routing.tables.spark_forms import in_shape, no_rows, readable_texts
from routing.terms import MSDB, MatchingStep, Outcome, Reason

UNSEEN = (
    "a message has a routing key that the first pass over the messages did not see: they changed while the run was"
    " at work"
)


def choose(
    keyed: DataFrame,
    decided: DecidedFrames,
    dialog_hash: DialogHash,
    *,
    fits: bool,
    is_rejected: Column | None = None,
) -> DataFrame:
    """Add ``choice`` to keyed messages, a struct such as `key_rows.CHOICE`.

    Rejected messages that are still included have no choice. A key has one timeline with one row for each time, so
    the joins keep the number of messages. The dialog-ID hash takes one of the choices (sections 2.3 and 6). With
    ``fits``, the decisions are broadcast.
    """
    in_time = _is_in_time() if decided.uses.has_times else None
    return _take_choice(_look_up_plan(keyed, decided, in_time, fits=fits), dialog_hash, is_rejected)


def decide_names(source: MessageSource, decided: DecidedFrames, *, checks_rows: bool, fits: bool) -> JoinSide:
    """Return the distinct names in messages with their timelines, for `choose_by_names`.

    Joining messages directly would shuffle all of them for each table that is too large for a broadcast.
    """
    messages = keying.add_names(source.bound_messages(checks_rows=checks_rows))
    names = keying.add_scope(messages.select(*NAMES.names, "bound_broker").distinct(), source.lookups)
    timed = _look_up_plan(keying.add_keys(names, source.lookups), decided, None, fits=fits)
    is_known = F.col("own_addresses").isNotNull().alias("scope_is_known")
    rows = timed.select(*NAMES.names, is_known, "plan_from", "valid_to", "choices")
    return source.keep("the names in messages", rows)


def choose_by_names(source: MessageSource, names: JoinSide, *, checks_rows: bool) -> DataFrame:
    """Add their choice to the messages to be resolved, like `choose`, by one join with their names."""
    messages = keying.add_names(source.bound_messages(checks_rows=checks_rows))
    joined = look_up(messages, names, NAMES.names, _is_in_time()).drop("broker_or_none")
    # A message without an instance matches nothing, and is rejected.
    resolvable = joined.where(F.coalesce("scope_is_known", F.col("instance_name").isNotNull()))
    return _take_choice(resolvable, source.lookups.dialog_hash, None)


def _is_in_time() -> Column:
    """Return whether a row of the plan is in force when a message is decided."""
    t = F.col("decided_at")
    starts = F.col("plan_from").isNull() | (F.col("plan_from") <= t)
    return starts & (F.col("valid_to").isNull() | (t < F.col("valid_to")))


def _look_up_plan(keyed: DataFrame, decided: DecidedFrames, in_time: Column | None, *, fits: bool) -> DataFrame:
    """Add the rows of their timelines to keyed rows: the one in force, or all without ``in_time``."""
    rows = side_of(decided.rows.withColumnRenamed("valid_from", "plan_from"), fits=fits)
    if decided.keys is None:
        return look_up(keyed, rows, KEY, in_time)
    numbered = look_up(keyed, side_of(decided.keys, fits=fits), KEY)
    return _look_up_timeline(numbered, rows.with_hint(), in_time)


def _take_choice(timed: DataFrame, dialog_hash: DialogHash, is_rejected: Column | None) -> DataFrame:
    """Replace the choices of messages by the one that their dialog-ID hash picks."""
    joined = _refuse_unseen(timed, is_rejected)
    count = F.size("choices")
    bucket = F.when(count == 1, F.lit(0)).otherwise(
        F.pmod(dialog_hash(F.col("conversation_id")), count).cast("int")
    )
    return joined.withColumn("choice", F.get("choices", bucket)).drop("choices")


def _look_up_timeline(messages: DataFrame, rows: DataFrame, in_time: Column | None) -> DataFrame:
    """Join messages with the rows of their timeline by its number, which needs no hash, unlike texts."""
    timelines = rows.withColumnRenamed(TIMELINE, "_side_timeline")
    same = F.col(TIMELINE) == F.col("_side_timeline")
    joined = messages.join(timelines, same if in_time is None else same & in_time, how="left")
    return joined.drop(TIMELINE, "_side_timeline")


def _refuse_unseen(joined: DataFrame, is_rejected: Column | None) -> DataFrame:
    """Make a pass fail before it commits if a message's key is not in the plan.

    An input without versions may have changed since the pass that counted the keys.
    """
    is_known = F.col("choices").isNotNull()
    may_pass = is_known if is_rejected is None else is_known | is_rejected
    return joined.withColumn("choices", F.when(may_pass, F.col("choices")).otherwise(F.raise_error(F.lit(UNSEEN))))


def add_requests(messages: DataFrame, requests: RequestSides, *, in_msdb: bool) -> DataFrame:
    """Add requested and requested_in_msdb: whether messages stop at step 4 in their scope, or in msdb.

    With ``in_msdb``, messages may wait after coming back to their instance.
    """
    scope = F.coalesce("database_name", F.lit(MSDB))
    first = _add_request(messages, requests, F.when(F.col("choice.asks"), scope), "requested")
    if not in_msdb:
        return first.withColumn("requested_in_msdb", F.lit(False))
    return _add_request(first, requests, F.when(F.col("choice.asks_msdb"), MSDB), "requested_in_msdb")


def with_requests(plan: RoutePlan, messages: DataFrame) -> DataFrame:
    """Add the columns of `add_requests` to chosen messages, unless they have them."""
    if plan.requests is None or plan.source.waiting is not None:
        return messages
    return add_requests(messages, plan.requests, in_msdb=plan.uses.asks_msdb)


def _add_request(messages: DataFrame, requests: RequestSides, database: Column, name: str) -> DataFrame:
    """Add whether messages open a request in a database, or wait there with their conversation.

    The time and id identify a message that opens a request, and the endpoint one that waits. Each occurs once in
    its side, so the joins keep the number of messages.
    """
    scope = ["instance_name", "asks_in", "to_service_name"]
    asking = messages.withColumn("asks_in", database)
    opening = requests.openers.rows.withColumnRenamed("ask_database", "asks_in")
    marked = opening.select(*scope, "decided_at", "message_id", F.lit(True).alias("opens"))
    on = [*scope, "decided_at", "message_id"]
    opened = look_up(asking, requests.openers.with_rows(marked), on, optional=["asks_in"])
    waited_for = requests.by_endpoint.rows.withColumnRenamed("ask_database", "asks_in")
    on = [*scope, "conversation_id", "is_initiator"]
    joined = look_up(opened, requests.by_endpoint.with_rows(waited_for), on, optional=["asks_in"])
    waits = F.coalesce(F.exists("requests", is_pending), F.lit(False))
    return joined.withColumn(name, F.col("opens").isNotNull() | waits).drop("asks_in", "opens", "requests")


def is_pending(request: Column) -> Column:
    """Return whether a message finds a request pending: made before (decided_at, message_id), not ended then."""
    t = F.col("decided_at")
    at_once = (request["requested_at"] == t) & (request["message_id"] < F.col("message_id"))
    earlier = (request["requested_at"] < t) | at_once
    return earlier & (request["ended_at"].isNull() | (t < request["ended_at"]))


def resolved_routes(plan: RoutePlan, *, has_attempts: bool = False) -> DataFrame:
    """Return the rows of ``resolved_routes``, one for each message to be resolved (rule book, all sections).

    With ``has_attempts``, the messages are those of `pending.try_first` and `pending.try_again`. A message with an
    unchanged decision has no row. Otherwise every attempt is the first.
    """
    messages, values = decide(plan, plan.choices, has_attempts=has_attempts)
    if has_attempts:
        messages = messages.where(~pending.is_unchanged(pending.digest(values)))
    values |= {"to_broker_instance": F.col("named_broker"), "run_id": F.lit(plan.options.run_id)}
    values["attempt"] = F.col("attempt") if has_attempts else F.lit(1)
    return in_shape(messages, RESOLVED_ROUTES, values)


def decide(
    plan: RoutePlan, chosen: DataFrame, *, has_attempts: bool = False
) -> tuple[DataFrame, dict[str, Column]]:
    """Return the chosen messages, and the values of `VERDICT_COLUMNS` for them.

    A message's own facts override the plan's choice: its hops, its request for a route, and first of all the end
    of its dialog. Impossible cases are left out. ``has_attempts`` is as in `resolved_routes`.
    """
    uses, requests = plan.uses, plan.requests
    has_transport = plan.source.lookups.checked.has_transport
    # Comparing a decision with an earlier one, or a row of pending_messages, takes as much code as a request.
    may_be_long = requests is not None or plan.source.any_ends or has_transport or has_attempts
    messages, decision = cut(chosen) if may_be_long else chosen, F.col("choice")
    if requests is not None:
        messages = with_requests(plan, messages)
        requested = _of_its_own(Outcome.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST)
        decision = F.when(F.col("requested") | F.col("requested_in_msdb"), requested).otherwise(decision)
    if plan.source.any_ends:
        expired = _of_its_own(Outcome.DROPPED, Reason.DIALOG_EXPIRED, None)
        decision = F.when(F.col("is_expired"), expired).otherwise(decision)
    # With a separate column, Spark evaluates the decision once for each row, not for each value.
    messages, decision = messages.withColumn("way", decision), F.col("way")
    values = {name: decision[name] for name in VERDICT_COLUMNS}
    if uses.reads_addresses:
        in_name = spark_forms.leading_address(F.col("to_service_name"))
        messages = messages.withColumn("in_name", F.when(decision[READS_ADDRESS], in_name))
        address = spark_forms.empty_as_null(F.col("in_name"))
        values["address"] = F.when(decision[READS_ADDRESS], address).otherwise(decision["address"])
    no_hops = decision["counts_hops"] & (F.col("hops_remaining") <= 0)
    values["outcome"] = F.when(no_hops, str(Outcome.DROPPED)).otherwise(decision["outcome"])
    values["reason"] = F.when(no_hops, str(Reason.HOP_LIMIT)).otherwise(decision["reason"])
    if requests is not None:
        # A message that waits in msdb keeps the id picked before and the route that led it back.
        is_led = ~(F.col("is_expired") | F.col("requested"))
        for name in ("broker_instance", "rerouted_from"):
            values[name] = F.when(is_led, F.col("choice")[name])
    values["broker_instance"] = F.coalesce(values["broker_instance"], F.col("bound_broker"))
    return messages, values


def cut(chosen: DataFrame) -> DataFrame:
    """Split the plan here, so that Spark compiles the next steps into a separate method.

    Java does not compile a method of more than 8,000 bytes, and Spark creates one for all work on a row. It starts
    another only if the next step names every existing column, which no select does. Turning one column into rows,
    one for each message, has no other effect. That column is the choice. Otherwise Spark evaluates conditions on a
    decision before this step, and repeats the code of the choice for each of its columns.
    """
    other_columns = tuple(name for name in chosen.columns if name != "choice")
    return chosen.unpivot(other_columns, "choice", "_name", "choice").drop("_name")


def _of_its_own(outcome: Outcome, reason: Reason, step: MatchingStep | None) -> Column:
    """Return a constant choice without a route, for a decision that is not in the plan."""
    values = {"outcome": str(outcome), "reason": str(reason), "matching_step": None if step is None else int(step)}
    return F.struct(*(F.lit(values.get(name)).alias(name) for name in CHOICE.names))


def rejected_messages(plan: RoutePlan) -> DataFrame:
    """Return the rows of ``rejected_messages``: messages that cannot be resolved, as read, with reasons.

    If there can be none, the messages are not read again.
    """
    messages = plan.source.messages
    if not plan.may_reject:
        return no_rows(messages.sparkSession, REJECTED_MESSAGES)
    faulty = plan.source.lookups.add_reasons(messages).where(F.size("reasons") > 0)
    return in_shape(faulty, REJECTED_MESSAGES, {"run_id": F.lit(plan.options.run_id), **readable_texts()})


def rejected_retries(plan: RoutePlan) -> DataFrame:
    """Return the keys (`pending.KEY`) of messages that are tried again and can no longer be resolved."""
    tried = plan.source.messages.where(pending.is_stored())
    return plan.source.lookups.add_reasons(tried).where(F.size("reasons") > 0).select(*pending.KEY)
