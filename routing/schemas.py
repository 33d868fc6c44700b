"""Define the columns of every stored table (`tables.md` describes them).

The schemas are plain values, so that a configuration can be read without Spark. `tables.frames` and
`tables.arrow_rows` convert them. A field with ``nullable=False`` is never null by contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args, get_type_hints

from routing.rules.candidate_order import CandidateRow
from routing.rules.estate import EstateRoute
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

    def only(self, *names: str) -> Schema:
        """Return the schema of some columns, in its own order."""
        return Schema(tuple(field for field in self if field.name in names))


AnyKind = ColumnKind | ArrayOf | MapOf | Schema
_STRING, _INT, _BIGINT, _DOUBLE = ColumnKind.STRING, ColumnKind.INT, ColumnKind.BIGINT, ColumnKind.DOUBLE
_BOOLEAN, _TIME = ColumnKind.BOOLEAN, ColumnKind.TIMESTAMP


def table_schema(*columns: tuple[str, AnyKind]) -> Schema:
    """Return the schema of (name, kind) pairs. A name that ends in ``!`` is never null."""
    return Schema(tuple(Field(name.rstrip("!"), kind, not name.endswith("!")) for name, kind in columns))


ROUTES = table_schema(
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
DATABASES = table_schema(
    ("instance_name!", _STRING),
    ("name!", _STRING),
    ("database_id", _INT),
    ("service_broker_guid!", _STRING),
    ("is_broker_enabled", _BOOLEAN),
)
SERVICES = table_schema(("instance_name!", _STRING), ("database_name!", _STRING), ("name!", _STRING))
INSTANCES = table_schema(
    ("instance_name!", _STRING),
    ("is_message_forwarding_enabled", _BOOLEAN),
    ("addresses", ArrayOf(_STRING)),
)
MESSAGES = table_schema(
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
    # For people and the return path. Decisions do not depend on it.
    ("from_service_name", _STRING),
)
DIALOGS = table_schema(
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
ROUTE_REQUESTS = table_schema(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("service_name!", _STRING),
    ("requested_at!", _TIME),
    ("message_id!", _STRING),
    ("ended_at", _TIME),
    # The endpoint that made the request (D10). Null in rows of release 0.2.0 and older.
    ("conversation_id", _STRING),
    ("is_initiator", _BOOLEAN),
)
OBSERVED_ROUTING = table_schema(
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
    # Only for events. event_hash identifies an event together with the instance.
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
IMPORTS = table_schema(
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("view_or_file!", _STRING),
    ("exported_at!", _TIME),
    ("imported_at!", _TIME),
    # Null in rows of older releases.
    ("kind", _STRING),
    ("content_digest", _STRING),
)
# The state that `check`, `lint`, `explain`, `trace` and `report` examine, as of the last export.
QUEUES = table_schema(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("schema_name", _STRING),
    ("name!", _STRING),
    ("service_names", ArrayOf(_STRING)),
    ("is_receive_enabled", _BOOLEAN),
    ("is_enqueue_enabled", _BOOLEAN),
    ("is_activation_enabled", _BOOLEAN),
    ("is_retention_enabled", _BOOLEAN),
    ("activation_procedure", _STRING),
    ("execute_as_name", _STRING),
    ("max_readers", _BIGINT),
    ("messages", _BIGINT),
    ("tasks_waiting", _BIGINT),
    ("monitor_state", _STRING),
    ("exported_at!", _TIME),
)
ENDPOINT_COUNTS = table_schema(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("state!", _STRING),
    ("service_name", _STRING),
    ("far_service", _STRING),
    ("is_initiator", _BOOLEAN),
    ("endpoints!", _BIGINT),
    ("exported_at!", _TIME),
)
# The rows that an import will write to table_key. action is put or remove, and rows is JSON (importing.journal).
UNFINISHED_IMPORTS = table_schema(
    ("import_id!", _STRING),
    ("started_at!", _TIME),
    ("release!", _STRING),
    ("table_key!", _STRING),
    ("action!", _STRING),
    ("part!", _INT),
    ("rows!", _STRING),
)

ALTERNATIVE_ROUTES = ArrayOf(table_schema(*((name, _STRING) for name in ALTERNATIVE_COLUMNS)))
# The kinds of columns by the types of the rules' fields. Without alternative routes, their column is null.
_ALTERNATIVES = tuple[EstateRoute, ...]
_KIND_OF: dict[object, AnyKind] = {
    **dict.fromkeys((str, Outcome, Reason), _STRING),
    bool: _BOOLEAN,
    int: _INT,
    MatchingStep: _INT,
    _ALTERNATIVES: ALTERNATIVE_ROUTES,
}


def columns_of(fields: type) -> Iterator[tuple[str, AnyKind]]:
    """Yield the columns for the fields of a class of the rules."""
    for name, hint in get_type_hints(fields).items():
        is_never_null = hint in _KIND_OF and hint != _ALTERNATIVES
        [kind] = {_KIND_OF[one] for one in (hint, *get_args(hint)) if one in _KIND_OF}
        yield f"{name}!" if is_never_null else name, kind


# The columns of a message in outputs of messages that were not rejected.
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
RESOLVED_ROUTES = table_schema(
    *_OF_A_MESSAGE,
    ("to_broker_instance", _STRING),
    ("decided_at!", _TIME),
    *columns_of(VerdictColumns),
    ("run_id!", _STRING),
    ("attempt!", _INT),
)
NEW_ROUTE_REQUESTS = table_schema(
    ("instance_name!", _STRING),
    ("database_name!", _STRING),
    ("service_name!", _STRING),
    ("requested_at!", _TIME),
    ("message_id!", _STRING),
    # The columns before the body are null in rows of release 0.2.0 and older.
    ("conversation_id", _STRING),
    ("is_initiator", _BOOLEAN),
    ("message_type_name", _STRING),
    ("service_contract_name", _STRING),
    ("body!", _STRING),
    ("run_id!", _STRING),
)
# One hop. scope is the database whose routes were searched, and address the one that the message takes.
HOPS = ArrayOf(table_schema(*((name.rstrip("!"), kind) for name, kind in columns_of(HopRow))))
_KIND_OF[tuple[HopRow, ...]] = HOPS
MESSAGE_PATHS = table_schema(
    *_OF_A_MESSAGE,
    ("from_service_name", _STRING),
    ("decided_at!", _TIME),
    *columns_of(PathRow),
)
"""Messages followed to their end, and back. ``outcome`` is an `Ending`. ``hops`` are those of the first path."""
# search is 1 for the message's own scope, 2 for msdb after it came back. database_name is the searched database.
ROUTE_CANDIDATES = table_schema(
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
CANDIDATE = table_schema(*columns_of(CandidateRow))
"""A candidate of a key, before it is joined with messages."""
# SQL Server's reports next to the rules' predictions, both as of first_observed_at, the start of the episode.
RECONCILIATION = table_schema(
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
    # The number of broker instances from which the dialog-ID hash picks, or null if it does not pick.
    ("broker_instances", _INT),
    ("class!", _STRING),
    ("why", _STRING),
    ("cause", _STRING),
    ("cause_text", _STRING),
)
"""Episodes of observations, each with its prediction. ``class`` is a `rules.reconciling.PairClass`."""
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
        # Null in rows of release 0.2.0 and older.
        Field("decision_digest", _BIGINT),
        Field("due_at", _TIME),
        Field("may_ask", _BOOLEAN),
    )
)
"""``due_at`` is when the decision may change with the time. ``may_ask`` is whether it may ask for a route."""
RUNS = table_schema(
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
    ("table_ids!", MapOf(_STRING, _STRING)),
    ("commit_identities!", MapOf(_STRING, _STRING)),
    # Null in rows of release 0.2.0 and older.
    ("engine", _STRING),
    ("rows_unchanged", _BIGINT),
    ("next_due_at", _TIME),
    ("input_digests", MapOf(_STRING, _STRING)),
    ("window_from", _TIME),
    ("window_to", _TIME),
    # Null if the run does not erase.
    ("rows_erased", _BIGINT),
    # Null if a faulty row would have stopped the run.
    ("rows_quarantined", _BIGINT),
    ("quarantined_instances", ArrayOf(_STRING)),
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
"""The inputs that grow with the traffic. All others are read as plain Python columns."""
KEYS: dict[str, tuple[str, ...]] = {
    "routes": ("instance_name", "database_name", "name", "valid_from"),
    "databases": ("instance_name", "name"),
    "services": ("instance_name", "database_name", "name"),
    "instances": ("instance_name",),
    "dialogs": ("instance_name", "database_name", "conversation_id", "is_initiator"),
    "route_requests": ("instance_name", "database_name", "service_name", "requested_at", "message_id"),
}
"""The keys of the inputs except messages."""
KEPT: dict[str, Schema] = {"observed_routing": OBSERVED_ROUTING, "imports": IMPORTS}
"""The tables that ``import`` keeps in addition to the inputs of ``resolve``."""
SEEN: dict[str, Schema] = {"queues": QUEUES, "endpoint_counts": ENDPOINT_COUNTS}
"""The tables of views that decide no route. ``import`` keeps them as of the last export."""
TABLES: dict[str, Schema] = {**INPUTS, **KEPT, **SEEN, "unfinished_imports": UNFINISHED_IMPORTS}
"""Every table of section ``tables``."""
OUTPUTS: dict[str, Schema] = {
    "resolved_routes": RESOLVED_ROUTES,
    "new_route_requests": NEW_ROUTE_REQUESTS,
    "rejected_messages": REJECTED_MESSAGES,
    "runs": RUNS,
    "pending_messages": PENDING_MESSAGES,
}
