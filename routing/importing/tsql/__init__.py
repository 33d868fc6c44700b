"""Read T-SQL scripts into statements and problems, and apply them to what one instance holds."""

from routing.importing.tsql.instance_state import (
    DatabaseState,
    EndpointState,
    InstanceState,
    RouteState,
    ServiceState,
)
from routing.importing.tsql.script_reader import (
    AppliedScript,
    ReadScript,
    apply_script,
    read_file,
    read_script,
    servers_in,
)
from routing.importing.tsql.script_statements import ScriptStatement, StatementProblem

__all__ = [
    "AppliedScript",
    "DatabaseState",
    "EndpointState",
    "InstanceState",
    "ReadScript",
    "RouteState",
    "ScriptStatement",
    "ServiceState",
    "StatementProblem",
    "apply_script",
    "read_file",
    "read_script",
    "servers_in",
]
