"""From input frames to a compiled run: validated, keyed, and with its routing plan.

The one room that acts on frames before anything is written: it collects the findings (bounded), the features
of the configuration (one row) and the distinct routing keys (bounded by the configuration).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from routing import keeping, requests, resolving, session, validate
from routing import keys as routing_keys
from routing.config import size_in_bytes
from routing.configuration import Configuration, Features, configuration, features
from routing.conform import conform, in_shape
from routing.dialog_hash import IMPLEMENTATIONS
from routing.errors import InputError
from routing.joining import Broadcasts, Side
from routing.plan import routing_plan
from routing.schemas import INPUTS, NEW_ROUTE_REQUESTS, OPTIONAL_INPUTS, REJECTED_MESSAGES
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE

_SHOWN_FINDINGS = 20
# Rough sizes in memory: a row of the plan, a choice, an alternative route, a dialog.
_PLAN_ROW, _CHOICE, _ALTERNATIVE, _DIALOG = 300, 250, 120, 350


@dataclass(frozen=True)
class Options:
    """How messages are resolved; the same words as section ``resolve`` of the configuration."""

    run_id: str
    as_of: datetime | None = None
    dialog_hash: str = "builtin"
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE


@dataclass(frozen=True)
class Checked:
    """Conformed frames without a fault, in the rules' view; ``routes`` is how many routes there are."""

    frames: Mapping[str, DataFrame]
    settings: Configuration
    uses: Features
    routes: int


@dataclass(frozen=True)
class Dialogs:
    """The dialogs that matter, as a side of a join, and whether any of them ends."""

    side: Side
    end: bool


@dataclass
class Compiled:
    """A run that is ready to be written: frames are lazy, counts are known.

    ``may_reject`` is false once the key pass has found no message to reject. ``keeper`` has what several passes
    read. The notes of ``broadcasts`` say where the run departs from the plan's law (a join without broadcast).
    """

    messages: DataFrame
    settings: Configuration
    uses: Features
    dialogs: Dialogs | None
    options: Options
    keeper: keeping.Keeper
    broadcasts: Broadcasts
    plan: DataFrame = field(init=False)
    key_count: int = 0
    rows_read: int = 0
    rows_rejected: int = 0
    may_reject: bool = True
    broadcast_plan: bool = True
    _chosen: DataFrame | None = field(default=None, init=False, repr=False)

    @property
    def notes(self) -> list[str]:
        """What the run has to say, which grows until its last table is written."""
        return self.broadcasts.notes

    def checked(self) -> DataFrame:
        """Every message, prepared, with is_valid."""
        prepared = routing_keys.prepared(self.messages, self.options.as_of)
        return routing_keys.in_scope(prepared, self.settings).withColumn("is_valid", routing_keys.is_valid())

    def valid(self) -> DataFrame:
        """The messages to be resolved; where the key pass found none to reject, they are not checked again."""
        if self.may_reject:
            return self.checked().where("is_valid")
        prepared = routing_keys.prepared(self.messages, self.options.as_of)
        return routing_keys.in_scope(prepared, self.settings) if self.uses.transport else prepared

    def in_dialog(self, messages: DataFrame) -> DataFrame:
        """Messages with what their dialogs say of them."""
        return routing_keys.in_dialog(messages, None if self.dialogs is None else self.dialogs.side)

    def keyed(self, valid: DataFrame) -> DataFrame:
        """Valid messages, bound and keyed."""
        bound = routing_keys.bound(self.in_dialog(valid))
        return routing_keys.keyed(bound, self.settings, transport=self.uses.transport)

    def counted(self) -> DataFrame:
        """The distinct keys of all messages, with how many have them (see `keys.counted`)."""
        messages = self.in_dialog(routing_keys.cleaned(self.messages, self.options.as_of))
        return routing_keys.counted(messages, self.settings, transport=self.uses.transport)

    def chosen(self) -> DataFrame:
        """Every valid message with its choice; made once, for what is made of it is analysed with it each time."""
        if self._chosen is None:
            self._chosen = resolving.chosen(
                self.keyed(self.valid()),
                self.plan,
                IMPLEMENTATIONS[self.options.dialog_hash],
                versions=self.uses.versions,
                broadcast=self.broadcast_plan,
            )
        return self._chosen

    def opened(self) -> Side | None:
        """The messages that open a route request, found now; None where no scope has a BrokerConfiguration route.

        As many as the services that messages invent.
        """
        if not self.uses.requests:
            return None
        record = self.settings.requests
        on_record = None if record is None else self._kept("the route requests on record", record)
        return requests.opened(self.chosen(), on_record, self.uses, self._kept)

    def _kept(self, what: str, rows: DataFrame) -> Side:
        return self.broadcasts.side(what, self.keeper.keep(rows))

    def resolved(self, opened: Side | None, attempt: Column | None = None) -> DataFrame:
        """The rows of ``resolved_routes``; what cannot happen in this run is left out of the plan."""
        messages = self.chosen()
        if opened is not None:
            messages = resolving.with_openers(messages, opened, in_msdb=self.uses.own_addresses)
        return resolving.resolved_routes(
            messages,
            self.options.run_id,
            F.lit(1) if attempt is None else attempt,
            may_expire=self.dialogs is not None and self.dialogs.end,
            may_ask=opened is not None,
            transport=self.uses.transport,
        )

    def new_route_requests(self, opened: Side | None) -> DataFrame:
        """The rows of ``new_route_requests``."""
        if opened is None:
            return _no_rows(self.messages.sparkSession, NEW_ROUTE_REQUESTS)
        namespace = self.options.missing_route_namespace
        return requests.new_route_requests(opened.rows, namespace, F.lit(self.options.run_id))

    def rejected(self) -> DataFrame:
        """The rows of ``rejected_messages``; where the key pass found none, the messages are not read again."""
        if not self.may_reject:
            return _no_rows(self.messages.sparkSession, REJECTED_MESSAGES)
        return resolving.rejected_messages(self.messages, self.settings, self.options.run_id)


def _no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    return in_shape(spark.range(0), schema, {name: F.lit(None) for name in schema.names})


def conformed(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Every input in its declared columns and types. Raises InputError."""
    missing = [key for key in INPUTS if key not in frames and key not in OPTIONAL_INPUTS]
    if missing:
        raise InputError(f"input tables are missing: {', '.join(missing)}", "give a DataFrame for each")
    return {key: conform(frames[key], key) for key in INPUTS if key in frames}


def check_rows(frames: Mapping[str, DataFrame]) -> None:
    """Stop where a configuration, dialogs or route_requests row is at fault. Raises InputError."""
    found = validate.findings(frames)
    total = found.count()
    if total:
        shown = found.orderBy("table_name", "row_key", "fault").limit(_SHOWN_FINDINGS).collect()
        raise InputError.faulty_rows([f"{r.table_name} ({r.row_key}): {r.fault}" for r in shown], total)


def checked(frames: Mapping[str, DataFrame]) -> Checked:
    """Check conformed frames, and find out meanwhile what they make use of. Raises InputError as `check_rows`."""
    settings = configuration(frames)
    # The faults come first: what else a faulty frame leads to is of no interest.
    _, used = keeping.all_of(
        frames["routes"].sparkSession,
        lambda: check_rows(frames),
        lambda: features(settings).collect()[0].asDict(),
    )
    routes = used.pop("routes")
    return Checked(frames, settings, Features(**used), routes)


def compiled(known: Checked, options: Options, keeper: keeping.Keeper, notes: list[str] | None = None) -> Compiled:
    """Compile checked frames: one pass over the messages for their keys.

    The pass is a hash aggregate; it also counts the messages read and those to be rejected. What ``keeper`` is
    given here must stay until the frames of the job have been read; ``notes`` grows until then.
    """
    frames, settings, uses = known.frames, known.settings, known.uses
    if options.dialog_hash == "udf":
        session.check_udf(frames["messages"].sparkSession)
    broadcasts = Broadcasts(size_in_bytes(options.broadcast_limit), [] if notes is None else notes)
    if known.routes > keeping.HELD_ROWS:
        # What several passes read, and is too large to be rows of the driver.
        settings = configuration(frames, keeper.cached)
    dialogs = _sized_dialogs(settings.dialogs, broadcasts)
    job = Compiled(frames["messages"], settings, uses, dialogs, options, keeper, broadcasts)
    keys = keeper.keep(job.counted())
    is_key = F.col("valid") > 0
    sums = [F.sum(name).alias(name) for name in ("rows", "valid")]
    total = keys.agg(*sums, F.count_if(is_key).alias("keys")).collect()[0]
    job.rows_read, job.key_count = int(total["rows"] or 0), int(total["keys"])
    job.rows_rejected = job.rows_read - int(total["valid"] or 0)
    job.may_reject = job.rows_rejected > 0
    keys = keys.where(is_key).select(*routing_keys.KEY)
    job.plan = keeper.keep(routing_plan(keys, settings, uses))
    return job


def _sized_dialogs(dialogs: DataFrame | None, broadcasts: Broadcasts) -> Dialogs | None:
    """The dialogs that matter, if there are any."""
    if dialogs is None:
        return None
    counts = dialogs.agg(F.count(F.lit(1)).alias("rows"), F.count("dialog_lifetime").alias("ending")).collect()[0]
    if not counts["rows"]:
        return None
    count = int(counts["rows"])
    return Dialogs(broadcasts.of_size(f"{count} dialogs", dialogs, count * _DIALOG), int(counts["ending"]) > 0)


def size_of_plan(plan: DataFrame) -> int:
    """The bytes that a plan takes in memory, roughly."""
    alternatives = F.aggregate(
        "choices",
        F.lit(0),
        lambda total, choice: total + F.greatest(F.size(choice["alternative_routes"]), F.lit(0)),
    )
    row = plan.agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.size("choices")).alias("choices"),
        F.sum(alternatives).alias("alternatives"),
    ).collect()[0]
    return (
        int(row["rows"]) * _PLAN_ROW
        + int(row["choices"] or 0) * _CHOICE
        + int(row["alternatives"] or 0) * _ALTERNATIVE
    )
