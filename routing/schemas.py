"""The columns of every table, in and out (`tables.md` of the documentation lists their meaning).

Plain values, so that a configuration can be read without Spark; `storage.kinds` has the same in the types of Spark
and Arrow. A field with ``nullable=False`` is one that the contract calls never null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args, get_type_hints

from routing.rules.candidate_order import CandidateRow
from routing.rules.estate import EstateRoute
from routing.rules.following import HopColumns
from routing.rules.pathing import HopRow, PathRow
from routing.rules.resolving import ALTERNATIVE_COLUMNS, VerdictColumns
from routing.terms import MatchingStep, Outcome, Reason, Word


class ColumnKind(Word):
    """A type of a column that holds one value, by Spark's name for it."""

    STRING = "string"
    INT = "int"
    BIGINT = "bigint"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class ArrayOf:
    """A list of values of one kind."""

    element: AnyKind

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True)
class MapOf:
    """Values by keys."""

    key: AnyKind
    value: AnyKind

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True)
class Field:
    """A column of a table, or a field of a value that has several."""

    name: str
    kind: AnyKind
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    """The columns of a table, or the fields of one value, in order."""

    fields: tuple[Field, ...]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return f"struct<{','.join(f'{field.name}:{field.kind}' for field in self)}>"

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [field.name for field in self]

    def optional(self) -> Schema:
        """Return the schema with every column nullable."""
        return Schema(tuple(Field(field.name, field.kind) for field in self))


AnyKind = ColumnKind | ArrayOf | MapOf | Schema
_STRING, _INT, _BIGINT, _DOUBLE = ColumnKind.STRING, ColumnKind.INT, ColumnKind.BIGINT, ColumnKind.DOUBLE
_BOOLEAN, _TIME = ColumnKind.BOOLEAN, ColumnKind.TIMESTAMP


def _table(*columns: tuple[str, AnyKind]) -> Schema:
    """Return a table's schema from (name, kind) pairs; a name that ends in ``!`` is never null."""
    return Schema(tuple(Field(name.rstrip("!"), kind, not name.endswith("!")) for name, kind in columns))


ROUTES = _table(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("name!", _STRING),
    ("remote_service_name", _STRING),
    ("broker_instance", _STRING),
    ("lifetime", _TIME),
    ("address!", _STRING),
    ("mirror_address", _STRING),
    ("valid_from", _TIME),
    ("valid_to", _TIME),
)
DATABASES = _table(
    ("instance_name!", _STRING),
    ("name!", _STRING),
    ("database_id", _INT),
    ("service_broker_guid!", _STRING),
    ("is_broker_enabled", _BOOLEAN),
)
SERVICES = _table(("instance_name!", _STRING), ("database_name!", _STRING), ("name!", _STRING))
INSTANCES = _table(
    ("instance_name!", _STRING),
    ("is_message_forwarding_enabled", _BOOLEAN),
    ("addresses", ArrayOf(_STRING)),
)
MESSAGES = _table(
    ("message_id!", _STRING),
    ("conversation_id!", _STRING),
    ("is_initiator!", _BOOLEAN),
    ("message_sequence_number", _BIGINT),
    ("enqueue_time!", _TIME),
    ("observed_at", _TIME),
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("to_service_name!", _STRING),
    ("to_broker_instance", _STRING),
    ("hops_remaining", _INT),
    # For people and the way back; the rules do not read it.
    ("from_service_name", _STRING),
)
DIALOGS = _table(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("conversation_id!", _STRING),
    ("is_initiator!", _BOOLEAN),
    ("conversation_group_id", _STRING),
    ("far_service", _STRING),
    ("far_broker_instance", _STRING),
    ("lifetime", _TIME),
    ("acknowledged_at", _TIME),
    ("acknowledged_broker_instance", _STRING),
)
ROUTE_REQUESTS = _table(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("service_name!", _STRING),
    ("requested_at!", _TIME),
    ("message_id!", _STRING),
    ("ended_at", _TIME),
    # Whose request it is (D10); null in rows of release 0.2.0 and older.
    ("conversation_id", _STRING),
    ("is_initiator", _BOOLEAN),
)
OBSERVED_ROUTING = _table(
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("conversation_id!", _STRING),
    ("conversation_handle", _STRING),
    ("is_initiator", _BOOLEAN),
    ("message_sequence_number", _BIGINT),
    ("message_id", _STRING),
    ("observed_at!", _TIME),
    ("source!", _STRING),
    ("status_text", _STRING),
    ("error_number", _INT),
    ("outcome", _STRING),
    ("to_service_name", _STRING),
    ("to_broker_instance", _STRING),
    ("from_service_name", _STRING),
    # Of events alone. event_hash: with the instance, what tells one event from another.
    ("event_hash", _STRING),
    ("route_type", _STRING),
    ("is_from_network", _BOOLEAN),
    ("next_hop", _STRING),
    ("from_broker_instance", _STRING),
    ("fragment_number", _BIGINT),
    ("remaining_hop_count", _INT),
    ("time_to_live_seconds", _BIGINT),
    ("live_time_seconds", _BIGINT),
    ("error_state", _INT),
    ("error_severity", _INT),
)
IMPORTS = _table(
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("view_or_file!", _STRING),
    ("exported_at!", _TIME),
    ("imported_at!", _TIME),
    # Null in rows of older releases.
    ("kind", _STRING),
    ("content_digest", _STRING),
)
# What an import is about to write to table_key: action is put or remove; rows is JSON (importing.journal).
UNFINISHED_IMPORTS = _table(
    ("import_id!", _STRING),
    ("started_at!", _TIME),
    ("release!", _STRING),
    ("table_key!", _STRING),
    ("action!", _STRING),
    ("part!", _INT),
    ("rows!", _STRING),
)

ALTERNATIVE_ROUTES = ArrayOf(_table(*((name, _STRING) for name in ALTERNATIVE_COLUMNS)))
# The kinds of what the rules say, by the types of their fields; no alternative routes are null.
_ALTERNATIVES = tuple[EstateRoute, ...]
_KIND_OF: dict[object, AnyKind] = {
    **dict.fromkeys((str, Outcome, Reason), _STRING),
    bool: _BOOLEAN,
    int: _INT,
    MatchingStep: _INT,
    _ALTERNATIVES: ALTERNATIVE_ROUTES,
}


def _columns_of(fields: type) -> Iterator[tuple[str, AnyKind]]:
    """Yield the columns of the fields of a class of the rules."""
    for name, hint in get_type_hints(fields).items():
        is_never_null = hint in _KIND_OF and hint != _ALTERNATIVES
        [kind] = {_KIND_OF[one] for one in (hint, *get_args(hint)) if one in _KIND_OF}
        yield f"{name}!" if is_never_null else name, kind


# What an output tells of a message that was not set aside.
_OF_A_MESSAGE: tuple[tuple[str, AnyKind], ...] = (
    ("message_id!", _STRING),
    ("conversation_id!", _STRING),
    ("is_initiator!", _BOOLEAN),
    ("message_sequence_number", _BIGINT),
    ("enqueue_time!", _TIME),
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("to_service_name!", _STRING),
)
RESOLVED_ROUTES = _table(
    *_OF_A_MESSAGE,
    ("to_broker_instance", _STRING),
    ("decided_at!", _TIME),
    *_columns_of(VerdictColumns),
    ("run_id!", _STRING),
    ("attempt!", _INT),
)
NEW_ROUTE_REQUESTS = _table(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("service_name!", _STRING),
    ("requested_at!", _TIME),
    ("message_id!", _STRING),
    # Null in rows of release 0.2.0 and older, up to the body.
    ("conversation_id", _STRING),
    ("is_initiator", _BOOLEAN),
    ("message_type_name", _STRING),
    ("service_contract_name", _STRING),
    ("body!", _STRING),
    ("run_id!", _STRING),
)
# One hop: scope is the database whose routes were searched; address the one that the message takes.
HOPS = ArrayOf(_table(*((name.rstrip("!"), kind) for name, kind in _columns_of(HopRow))))
_KIND_OF[tuple[HopRow, ...]] = HOPS
MESSAGE_PATHS = _table(
    *_OF_A_MESSAGE,
    ("from_service_name", _STRING),
    ("decided_at!", _TIME),
    *_columns_of(PathRow),
)
"""Messages followed to their end, and back. ``outcome`` is an `Ending`, ``hops`` are the first way's."""
# search: 1 the message's own scope, 2 msdb after it came back; database_name: whose routes were searched.
ROUTE_CANDIDATES = _table(
    ("instance_name!", _STRING),
    ("message_id!", _STRING),
    ("decided_at!", _TIME),
    ("search!", _INT),
    ("database_name!", _STRING),
    ("candidate_rank!", _INT),
    ("candidates_total!", _INT),
    ("matching_step!", _INT),
    ("tier", _STRING),
    ("route_name", _STRING),
    ("broker_instance", _STRING),
    ("address", _STRING),
    ("mirror_address", _STRING),
    ("is_picked", _BOOLEAN),
    ("equal_to", _STRING),
    ("leads_back!", _BOOLEAN),
    ("is_usable!", _BOOLEAN),
    ("why_not", _STRING),
    ("is_reached!", _BOOLEAN),
    ("is_chosen!", _BOOLEAN),
    ("is_alternative!", _BOOLEAN),
)
"""Messages with every route that matches a step of their searches, in the order in which the rules take them."""
CANDIDATE = _table(*_columns_of(CandidateRow))
"""A candidate of a key, before it is joined with messages."""
# A path has a number where the dialog is not known, and decides; direction: THERE or BACK.
TRACED_WAYS = _table(
    ("path!", _INT),
    ("direction!", _STRING),
    ("way!", _INT),
    ("outcome!", _STRING),
    ("reason", _STRING),
    ("instance_name", _STRING),
    ("database_name", _STRING),
    ("address", _STRING),
)
"""The ways of one message, and where each ends."""
TRACED_HOPS = _table(
    ("path!", _INT),
    ("direction!", _STRING),
    ("way!", _INT),
    ("hop!", _INT),
    *_columns_of(HopColumns),
)
"""Their hops; ``scope`` is the database whose routes were searched."""
# What SQL Server said beside what the rules say; both as of first_observed_at, the start of the episode.
RECONCILIATION = _table(
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("conversation_id!", _STRING),
    ("is_initiator", _BOOLEAN),
    ("to_service_name", _STRING),
    ("message_id", _STRING),
    ("source!", _STRING),
    ("first_observed_at!", _TIME),
    ("last_observed_at!", _TIME),
    ("observations!", _BIGINT),
    ("observed_outcome", _STRING),
    ("observed_error_number", _INT),
    ("observed_status_text", _STRING),
    ("observed_broker_instance", _STRING),
    ("observed_next_hop", _STRING),
    ("predicted_outcome", _STRING),
    ("predicted_reason", _STRING),
    ("predicted_broker_instance", _STRING),
    ("matching_step", _INT),
    ("route_name", _STRING),
    ("address", _STRING),
    ("mirror_address", _STRING),
    ("destination_database", _STRING),
    # How many broker instances the dialog-ID hash picks among; null where it does not.
    ("broker_instances", _INT),
    ("class!", _STRING),
    ("why", _STRING),
    ("cause", _STRING),
    ("cause_text", _STRING),
)
"""Episodes of what was observed, each beside its prediction; ``class`` is a `rules.reconciling.PairClass`."""
RECONCILED_COUNTS = _table(
    ("instance_name!", _STRING),
    ("class!", _STRING),
    ("episodes!", _BIGINT),
    ("observations!", _BIGINT),
)
"""How many episodes of an instance are of a class."""
RECONCILED_CAUSES = _table(
    ("instance_name!", _STRING),
    ("cause!", _STRING),
    ("cause_text!", _STRING),
    ("episodes!", _BIGINT),
    ("first_observed_at!", _TIME),
    ("last_observed_at!", _TIME),
)
"""What is most likely off, with how many episodes it explains."""
BALANCED_PICKS = _table(
    ("instance_name!", _STRING),
    ("to_service_name!", _STRING),
    ("broker_instances!", _INT),
    ("episodes!", _BIGINT),
    ("same!", _BIGINT),
)
"""Of services that are balanced: how often the broker instance that was observed is the one that was predicted."""
REJECTED_MESSAGES = Schema(
    (
        *(
            # An integer that does not fit is a reason for rejection, so the value as read must fit here.
            Field(f.name, _BIGINT if f.kind == _INT else f.kind, True)
            for f in MESSAGES
        ),
        Field("reasons", ArrayOf(_STRING), False),
        Field("run_id", _STRING, False),
    )
)
PENDING_MESSAGES = Schema(
    (
        *MESSAGES,
        Field("attempt", _INT, False),
        Field("last_decided_at", _TIME, False),
        Field("last_reason", _STRING, False),
        Field("run_id", _STRING, False),
    )
)
RUNS = _table(
    ("run_id!", _STRING),
    ("mode!", _STRING),
    ("started_at!", _TIME),
    ("finished_at!", _TIME),
    ("as_of", _TIME),
    ("now", _TIME),
    ("input_versions!", MapOf(_STRING, _BIGINT)),
    ("output_versions!", MapOf(_STRING, _BIGINT)),
    ("rows_read!", _BIGINT),
    ("rows_resolved!", _BIGINT),
    ("rows_rejected!", _BIGINT),
    ("outcome_counts!", MapOf(_STRING, _BIGINT)),
    ("reason_counts!", MapOf(_STRING, _BIGINT)),
    ("dialog_hash!", _STRING),
    ("settings!", _STRING),
    ("stage_seconds!", MapOf(_STRING, _DOUBLE)),
    ("release!", _STRING),
    # Null in rows of release 0.1.0.
    ("table_ids", MapOf(_STRING, _STRING)),
    ("commit_identities", MapOf(_STRING, _STRING)),
    # Null in rows of release 0.2.0 and older.
    ("engine", _STRING),
)
# A line of an explanation. search: 1 the message's own scope, 2 msdb once the message has come back, null for the
# message as a whole. step: the matching step that the line belongs to. name: of a route, database or tier.
# reasons: why a route did not match. routes: the names of a tier's routes. at: the moment that decides. count: how
# many. error_number, status_text and why: what SQL Server said of the message, and what that says of the verdict.
EXPLAINED_STEPS = _table(
    ("position!", _INT),
    ("search", _INT),
    ("step", _INT),
    ("item!", _STRING),
    ("finding!", _STRING),
    ("name", _STRING),
    ("reasons", ArrayOf(_STRING)),
    ("service_name", _STRING),
    ("broker_instance", _STRING),
    ("address", _STRING),
    ("mirror_address", _STRING),
    ("valid_from", _TIME),
    ("valid_to", _TIME),
    ("at", _TIME),
    ("database_name", _STRING),
    ("routes", ArrayOf(_STRING)),
    ("outcome", _STRING),
    ("reason", _STRING),
    ("count", _BIGINT),
    ("error_number", _BIGINT),
    ("status_text", _STRING),
    ("why", _STRING),
    ("instance_name", _STRING),
)

INPUTS: dict[str, Schema] = {
    "routes": ROUTES,
    "databases": DATABASES,
    "services": SERVICES,
    "instances": INSTANCES,
    "messages": MESSAGES,
    "dialogs": DIALOGS,
    "route_requests": ROUTE_REQUESTS,
}
OPTIONAL_INPUTS = ("dialogs", "route_requests")
SETTINGS = ("routes", "databases", "services", "instances", "route_requests")
TRAFFIC = ("messages", "dialogs")
"""The inputs that are read as columns of plain Python, whatever their size; not messages and dialogs."""
KEYS: dict[str, tuple[str, ...]] = {
    "routes": ("instance_name", "database_name", "name", "valid_from"),
    "databases": ("instance_name", "name"),
    "services": ("instance_name", "database_name", "name"),
    "instances": ("instance_name",),
    "dialogs": ("instance_name", "database_name", "conversation_id", "is_initiator"),
    "route_requests": ("instance_name", "database_name", "service_name", "requested_at", "message_id"),
}
"""The keys of the inputs, but for messages."""
KEPT: dict[str, Schema] = {"observed_routing": OBSERVED_ROUTING, "imports": IMPORTS}
"""What ``import`` keeps besides the inputs of ``resolve``."""
TABLES: dict[str, Schema] = {**INPUTS, **KEPT, "unfinished_imports": UNFINISHED_IMPORTS}
"""Every table of section ``tables``."""
OUTPUTS: dict[str, Schema] = {
    "resolved_routes": RESOLVED_ROUTES,
    "new_route_requests": NEW_ROUTE_REQUESTS,
    "rejected_messages": REJECTED_MESSAGES,
    "runs": RUNS,
    "pending_messages": PENDING_MESSAGES,
}
FINDINGS = _table(
    ("code!", _STRING),
    ("severity!", _STRING),
    ("instance_name", _STRING),
    ("database_name", _STRING),
    ("object", _STRING),
    ("message!", _STRING),
    ("advice!", _STRING),
    ("error_number", _INT),
)
"""What ``lint`` finds."""
DECIDED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
"""What of a decision is compared."""
MESSAGE_CHANGES = Schema(
    (
        *(Field(f.name, f.kind) for f in MESSAGES if f.name not in ("observed_at", "hops_remaining")),
        *(
            Field(f"{name}_{when}", _STRING, name not in ("outcome", "reason"))
            for when in ("before", "after")
            for name in DECIDED
        ),
    )
)
"""Messages of which a decision differs between two configurations; one that is set aside has outcome REJECTED."""
_GROUPED = ("instance_name", "database_name", "to_service_name")
KEY_CHANGES = Schema(
    (
        *(Field(name, _STRING) for name in _GROUPED),
        *(f for f in MESSAGE_CHANGES if f.name.endswith(("_before", "_after"))),
        Field("messages", _BIGINT, False),
    )
)
"""How many messages of an instance and database, null for arrivals, to a service change in the same way."""
_ENDS = tuple(f"{name}_{when}!" for when in ("before", "after") for name in ("outcome", "reason"))
EXAMPLES = _table(
    *((name, _STRING) for name in _ENDS),
    *((name, _STRING) for name in ("instance_name", "message_id", "conversation_id")),
)
"""Messages that change, as examples of what becomes of others."""
CHANGE_COUNTS = _table(
    *((name, _STRING) for name in _ENDS),
    ("messages!", _BIGINT),
    ("examples!", ArrayOf(Schema(EXAMPLES.fields[len(_ENDS) :]))),
)
"""How many messages change from an outcome and reason to others."""
_OF_A_ROUTE = ("remote_service_name", "broker_instance", "address", "mirror_address", "lifetime")
ROUTE_CHANGES = Schema(
    (
        *(Field(name, _STRING, False) for name in ("change", "instance_name", "database_name", "name")),
        *(
            Field(f"{f.name}_{when}", f.kind)
            for when in ("before", "after")
            for f in ROUTES
            if f.name in _OF_A_ROUTE
        ),
    )
)
"""Routes in force that differ; ``change`` is added, removed or changed."""
FINDING_CHANGES = Schema((Field("change", _STRING, False), *FINDINGS))
"""Findings of ``lint`` that a change brings or takes away; ``change`` is comes or goes."""
LISTED_RUNS = _table(
    ("run_id!", _STRING),
    ("mode!", _STRING),
    ("started_at!", _TIME),
    ("seconds!", _DOUBLE),
    ("rows_read!", _BIGINT),
    ("rows_resolved!", _BIGINT),
    ("rows_rejected!", _BIGINT),
    ("outcome_counts!", MapOf(_STRING, _BIGINT)),
    ("release!", _STRING),
)
"""Runs as a list shows them."""
ONE_RUN = Schema(
    (
        *RUNS,
        Field("seconds", _DOUBLE, False),
        # Slowest first; share: of the run's seconds, null in a run of no time.
        Field("slow_stages", ArrayOf(_table(("stage", _STRING), ("seconds", _DOUBLE), ("share", _DOUBLE))), False),
    )
)
"""One run with its slow stages."""
LISTED_MESSAGES = _table(
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("to_service_name!", _STRING),
    ("outcome!", _STRING),
    ("reason!", _STRING),
    ("enqueue_time!", _TIME),
    ("age_seconds!", _BIGINT),
    ("message_id!", _STRING),
    ("conversation_id!", _STRING),
    ("is_initiator!", _BOOLEAN),
    ("message_sequence_number", _BIGINT),
    ("route_name", _STRING),
    # Null where no table `imports` is known.
    ("is_waiting", _BOOLEAN),
    # The newest transmission_status or event, and what it says of the verdict; null where none was imported.
    ("status_observed_at", _TIME),
    ("status_source", _STRING),
    ("status_outcome", _STRING),
    ("status_number", _INT),
    ("status_text", _STRING),
    ("status_next_hop", _STRING),
    ("agreement", _STRING),
    ("agreement_why", _STRING),
    ("conversation_handle", _STRING),
)
"""Messages as a list shows them."""
MESSAGE_COUNTS = _table(("outcome!", _STRING), ("reason!", _STRING), ("messages!", _BIGINT))
"""How many messages have an outcome and a reason."""
MESSAGE_GROUPS = _table(
    ("instance_name!", _STRING),
    ("to_service_name!", _STRING),
    ("reason!", _STRING),
    ("outcome!", _STRING),
    ("messages!", _BIGINT),
)
"""How many messages of an instance to a service have a reason."""
ROUTE_COVERAGE = _table(("instance_name", _STRING), ("routes!", _BIGINT), ("used!", _BIGINT))
"""How many routes of an instance messages used."""
