"""From input frames to a compiled run: validated, keyed, and with its routing plan.

The one room that acts on frames before anything is written: it collects the findings (bounded), instances and
databases, the distinct routing keys, and the routes and services that can concern these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from routing.config import size_in_bytes
from routing.messages import keying, openers, results, validate
from routing.messages.dialog_hash import IMPLEMENTATIONS
from routing.messages.lookups import Configuration, Facts, configuration, facts
from routing.messages.plan import Plan, routing_plan
from routing.schemas import NEW_ROUTE_REQUESTS, REJECTED_MESSAGES
from routing.sessions import session
from routing.storage import keeping
from routing.storage.columns import Columns, collect
from routing.storage.conform import in_shape
from routing.storage.joining import Broadcasts, Side
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE

# A dialog's size in memory, roughly.
_DIALOG = 350


@dataclass(frozen=True)
class Options:
    """How messages are resolved; the same words as section ``resolve`` of the configuration."""

    run_id: str
    as_of: datetime | None = None
    dialog_hash: str = "builtin"
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE


@dataclass(frozen=True)
class CheckedTables:
    """Conformed frames without a fault, and what was found out meanwhile."""

    frames: Mapping[str, DataFrame]
    facts: Facts


@dataclass(frozen=True)
class Dialogs:
    """The dialogs that matter, as a side of a join, and whether any of them ends."""

    side: Side
    end: bool


@dataclass(frozen=True)
class Source:
    """Messages, and what they are looked up in; all frames are lazy."""

    messages: DataFrame
    settings: Configuration
    dialogs: Dialogs | None
    as_of: datetime | None

    @property
    def has_transport(self) -> bool:
        """Whether a route may read its address from the service name."""
        return self.settings.facts.has_transport

    def keys(self) -> DataFrame:
        """The distinct keys of all messages, with how many have them (see `keying.count_keys`)."""
        messages = self._in_dialog(keying.clean(self.messages, self.as_of))
        return keying.count_keys(messages, self.settings, transport=self.has_transport)

    def resolvable(self, *, may_reject: bool) -> DataFrame:
        """The messages to be resolved, bound and keyed; where none is to be rejected, none is checked again."""
        prepared = keying.prepare(self.messages, self.as_of)
        if may_reject or self.has_transport:
            prepared = keying.add_scope(prepared, self.settings)
        valid = prepared.where(keying.is_valid()) if may_reject else prepared
        bound = keying.bind(self._in_dialog(valid))
        return keying.add_keys(bound, self.settings, transport=self.has_transport)

    def _in_dialog(self, messages: DataFrame) -> DataFrame:
        return keying.add_dialog(messages, None if self.dialogs is None else self.dialogs.side)


@dataclass(frozen=True)
class KeyPass:
    """The distinct keys of all messages that can be resolved, and how many messages there are."""

    source: Source
    broadcasts: Broadcasts
    keys: Columns
    rows_read: int
    rows_rejected: int


@dataclass(frozen=True)
class Job:
    """A run that is ready to be written: frames are lazy, counts are known.

    ``keeper`` has what several passes read. The notes of ``broadcasts`` say where the run departs from the plan's
    law (a join without broadcast).
    """

    counted: KeyPass
    plan: Plan
    options: Options
    keeper: keeping.Keeper

    @property
    def source(self) -> Source:
        """The messages, and what they are looked up in."""
        return self.counted.source

    @property
    def broadcasts(self) -> Broadcasts:
        """What may be broadcast."""
        return self.counted.broadcasts

    @property
    def notes(self) -> list[str]:
        """What the run has to say, which grows until its last table is written."""
        return self.broadcasts.notes

    @property
    def may_ask(self) -> bool:
        """Whether any message may open a request for a route."""
        return self.plan.uses.asks or self.plan.uses.asks_msdb

    @cached_property
    def choices(self) -> DataFrame:
        """Every valid message with its choice; made once, for what is made of it is analysed with it each time."""
        return results.choose(
            self.source.resolvable(may_reject=self.counted.rows_rejected > 0),
            self.plan,
            IMPLEMENTATIONS[self.options.dialog_hash],
            fits=self.plan.size <= self.broadcasts.limit,
        )

    def find_openers(self) -> Side | None:
        """The messages that open a route request, found now; None where no message reaches step 4.

        As many as the services that messages invent.
        """
        if not self.may_ask:
            return None
        record = self.source.settings.requests
        on_record = None if record is None else self._keep("the route requests on record", record)
        return openers.find_openers(self.choices, on_record, self.plan.uses, self._keep)

    def _keep(self, what: str, rows: DataFrame) -> Side:
        return self.broadcasts.side(what, self.keeper.keep(rows))

    def resolved_routes(self, opened: Side | None, attempt: Column | None = None) -> DataFrame:
        """The rows of ``resolved_routes``; what cannot happen in this run is left out of the plan."""
        messages, uses, dialogs = self.choices, self.plan.uses, self.source.dialogs
        if opened is not None:
            messages = results.add_openers(messages, opened, in_msdb=uses.asks_msdb)
        return results.resolved_routes(
            messages,
            self.options.run_id,
            F.lit(1) if attempt is None else attempt,
            may_expire=dialogs is not None and dialogs.end,
            may_ask=opened is not None,
            reads_addresses=uses.reads_addresses,
        )

    def new_route_requests(self, opened: Side | None) -> DataFrame:
        """The rows of ``new_route_requests``."""
        if opened is None:
            return _no_rows(self.source.messages.sparkSession, NEW_ROUTE_REQUESTS)
        namespace = self.options.missing_route_namespace
        return openers.new_route_requests(opened.rows, namespace, F.lit(self.options.run_id))

    def rejected_messages(self) -> DataFrame:
        """The rows of ``rejected_messages``; where the key pass found none, the messages are not read again."""
        messages = self.source.messages
        if not self.counted.rows_rejected:
            return _no_rows(messages.sparkSession, REJECTED_MESSAGES)
        return results.rejected_messages(messages, self.source.settings, self.options.run_id)


def _no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    return in_shape(spark.range(0), schema, {name: F.lit(None) for name in schema.names})


def check(frames: Mapping[str, DataFrame]) -> CheckedTables:
    """Check conformed frames, and look through them meanwhile. Raises InputError."""
    # The faults come first: what else a faulty frame leads to is of no interest.
    _, known = keeping.all_of(
        frames["routes"].sparkSession, lambda: validate.check_rows(frames), lambda: facts(frames)
    )
    return CheckedTables(frames, known)


def count_keys(
    known: CheckedTables, options: Options, keeper: keeping.Keeper, notes: list[str] | None = None
) -> KeyPass:
    """One pass over the messages, a hash aggregate: their keys, and how many are read and to be rejected.

    What ``keeper`` is given here must stay until the frames of the job have been read; ``notes`` grows until then.
    """
    messages = known.frames["messages"]
    if options.dialog_hash == "udf":
        session.check_udf(messages.sparkSession)
    broadcasts = Broadcasts(size_in_bytes(options.broadcast_limit), [] if notes is None else notes)
    # What several passes read, and is too large to be rows of the driver.
    kept = {"kept": keeper.cached} if known.facts.is_large else {}
    settings = configuration(known.frames, known.facts, **kept)
    source = Source(messages, settings, _size_dialogs(settings.dialogs, broadcasts), options.as_of)
    found = collect(source.keys())
    read, valid = sum(found.values["rows"]), sum(found.values["valid"])
    return KeyPass(source, broadcasts, found.where("valid"), read, read - valid)


def compile_job(counted: KeyPass, options: Options, keeper: keeping.Keeper) -> Job:
    """Decide for the keys of a job, on the driver."""
    source, broadcasts, keys = counted.source, counted.broadcasts, counted.keys
    instances = source.settings.instances(keys.values["key_service"])
    plan = routing_plan(source.messages.sparkSession, keys, instances, keeper)
    if plan.size > broadcasts.limit:
        broadcasts.notes.append(
            f"the routing plan takes {plan.size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )
    return Job(counted, plan, options, keeper)


def _size_dialogs(dialogs: DataFrame | None, broadcasts: Broadcasts) -> Dialogs | None:
    """The dialogs that matter, if there are any."""
    if dialogs is None:
        return None
    counts = dialogs.agg(F.count(F.lit(1)).alias("rows"), F.count("dialog_lifetime").alias("ending")).collect()[0]
    if not counts["rows"]:
        return None
    count = int(counts["rows"])
    return Dialogs(broadcasts.of_size(f"{count} dialogs", dialogs, count * _DIALOG), int(counts["ending"]) > 0)
