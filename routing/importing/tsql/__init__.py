"""T-SQL scripts: read into statements and problems, and applied to what one instance holds."""

from routing.importing.tsql.script import AppliedScript, ReadScript, apply_script
from routing.importing.tsql.script_reader import read_file, read_script, servers_in
from routing.importing.tsql.script_statements import ScriptStatement, StatementProblem
from routing.importing.tsql.state import DatabaseState, EndpointState, InstanceState, RouteState, ServiceState

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
