"""Define the columns of rows that functions and commands return, except stored tables (`schemas`)."""

from __future__ import annotations

from routing.rules.following import HopColumns
from routing.rules.path_changes import HopPlace, PathEnding
from routing.schemas import (
    MESSAGES,
    ROUTES,
    RUNS,
    ArrayOf,
    ColumnKind,
    Field,
    MapOf,
    Schema,
    columns_of,
    table_schema,
)

_STRING, _INT, _BIGINT, _DOUBLE = ColumnKind.STRING, ColumnKind.INT, ColumnKind.BIGINT, ColumnKind.DOUBLE
_BOOLEAN, _TIME = ColumnKind.BOOLEAN, ColumnKind.TIMESTAMP

# Paths are numbered if an unknown dialog decides the path. direction is THERE or BACK.
TRACED_WAYS = table_schema(
    ("path!", _INT),
    ("direction!", _STRING),
    ("way!", _INT),
    ("outcome!", _STRING),
    ("reason", _STRING),
    ("instance_name", _STRING),
    ("database_name", _STRING),
    ("address", _STRING),
)
"""The paths of one message with their endings."""
TRACED_HOPS = table_schema(
    ("path!", _INT),
    ("direction!", _STRING),
    ("way!", _INT),
    ("hop!", _INT),
    *columns_of(HopColumns),
)
"""The hops of these paths. ``scope`` is the searched database."""
RECONCILED_COUNTS = table_schema(
    ("instance_name!", _STRING),
    ("class!", _STRING),
    ("episodes!", _BIGINT),
    ("observations!", _BIGINT),
)
"""How many episodes of an instance are in a class."""
RECONCILED_CAUSES = table_schema(
    ("instance_name!", _STRING),
    ("cause!", _STRING),
    ("cause_text!", _STRING),
    ("episodes!", _BIGINT),
    ("first_observed_at!", _TIME),
    ("last_observed_at!", _TIME),
)
"""Likely causes, with the number of episodes that each explains."""
BALANCED_PICKS = table_schema(
    ("instance_name!", _STRING),
    ("to_service_name!", _STRING),
    ("broker_instances!", _INT),
    ("episodes!", _BIGINT),
    ("same!", _BIGINT),
)
"""How often the observed broker instance of a balanced service is the predicted one."""
# A line of an explanation. search is 1 for the message's own scope, 2 for msdb after the message has come back, or
# null for the message as a whole. step is the matching step of the line. name is that of a route, database or
# tier. reasons are why a route did not match. routes are the names of a tier's routes. at is the time that
# decides. count is how many there are. error_number and status_text are SQL Server's report on the message, and
# why compares it with the verdict.
EXPLAINED_STEPS = table_schema(
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
FINDINGS = table_schema(
    ("code!", _STRING),
    ("severity!", _STRING),
    ("instance_name", _STRING),
    ("database_name", _STRING),
    ("object", _STRING),
    ("message!", _STRING),
    ("advice!", _STRING),
    ("error_number", _INT),
)
"""The findings of ``lint``."""
DECIDED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
"""The compared columns of the first decision."""
ENDING = PathEnding._fields
"""The compared columns of the ending."""
CHANGED_HOP = HopPlace._fields
"""The first hop in which the paths of both sides differ."""
SIDES = ("before", "after")
_SOUGHT = ("outcome", "reason", "ending", "ending_reason")
_ALWAYS_THERE = ("outcome", "reason", "ending")
_BOTH = tuple(
    Field(f"{name}_{when}", _STRING, name not in _ALWAYS_THERE) for when in SIDES for name in (*DECIDED, *ENDING)
)
_HOP = tuple(Field(name, _BIGINT if name == "hop" else _STRING) for name in CHANGED_HOP)
MESSAGE_CHANGES = Schema(
    (
        *(Field(f.name, f.kind) for f in MESSAGES if f.name not in ("observed_at", "hops_remaining")),
        *_BOTH,
        *_HOP,
    )
)
"""Messages with a different first decision or ending in two configurations (tables.md)."""
_GROUPED = ("instance_name", "database_name", "to_service_name")
KEY_CHANGES = Schema(
    (*(Field(name, _STRING) for name in _GROUPED), *_BOTH, *_HOP, Field("messages", _BIGINT, False))
)
"""How many messages of an instance and database, null for arrivals, to a service change in the same way."""
ENDS = tuple(f"{name}_{when}" for when in SIDES for name in _SOUGHT)
"""The outcomes and endings of both sides. Examples are kept for each combination."""
_ENDS = tuple(field for field in _BOTH if field.name in ENDS)
_EXAMPLE = tuple(Field(name, _STRING) for name in ("instance_name", "message_id", "conversation_id"))
EXAMPLES = Schema((*_ENDS, *_EXAMPLE))
"""Examples of changed messages."""
CHANGE_COUNTS = Schema(
    (*_ENDS, Field("messages", _BIGINT, False), Field("examples", ArrayOf(Schema(_EXAMPLE)), False))
)
"""How many messages change from an outcome, ending and their reasons to others."""
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
"""Valid routes that differ. ``change`` is added, removed or changed."""
FINDING_CHANGES = Schema((Field("change", _STRING, False), *FINDINGS))
"""Findings of ``lint`` that appear or disappear. ``change`` is comes or goes."""
LISTED_RUNS = table_schema(
    ("run_id!", _STRING),
    ("mode!", _STRING),
    ("started_at!", _TIME),
    ("seconds!", _DOUBLE),
    ("rows_read!", _BIGINT),
    ("rows_resolved!", _BIGINT),
    ("rows_rejected!", _BIGINT),
    ("rows_unchanged", _BIGINT),
    ("outcome_counts!", MapOf(_STRING, _BIGINT)),
    ("release!", _STRING),
)
"""Runs as a list shows them."""
ONE_RUN = Schema(
    (
        *RUNS,
        Field("seconds", _DOUBLE, False),
        # Slowest first. share is the share of the run's seconds, or null if the run took no time.
        Field(
            "slow_stages",
            ArrayOf(table_schema(("stage", _STRING), ("seconds", _DOUBLE), ("share", _DOUBLE))),
            False,
        ),
    )
)
"""One run with its slow stages."""
LISTED_MESSAGES = table_schema(
    ("instance_name!", _STRING),
    ("database_name", _STRING),
    ("to_service_name!", _STRING),
    ("outcome!", _STRING),
    ("reason!", _STRING),
    ("enqueue_time!", _TIME),
    ("age_seconds!", _BIGINT),
    # The time of the decision that still delays the message, or null for other outcomes.
    ("delayed_since", _TIME),
    ("message_id!", _STRING),
    ("conversation_id!", _STRING),
    ("is_initiator!", _BOOLEAN),
    ("message_sequence_number", _BIGINT),
    ("route_name", _STRING),
    # Null without a table `imports`.
    ("is_waiting", _BOOLEAN),
    # The newest transmission_status or event and its agreement with the verdict, null if none was imported.
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
MESSAGE_COUNTS = table_schema(("outcome!", _STRING), ("reason!", _STRING), ("messages!", _BIGINT))
"""How many messages have an outcome and a reason."""
MESSAGE_GROUPS = table_schema(
    ("instance_name!", _STRING),
    ("to_service_name!", _STRING),
    ("reason!", _STRING),
    ("outcome!", _STRING),
    ("messages!", _BIGINT),
)
"""How many messages of an instance to a service have a reason."""
ROUTE_COVERAGE = table_schema(("instance_name", _STRING), ("routes!", _BIGINT), ("used!", _BIGINT))
"""How many routes of an instance messages used."""
