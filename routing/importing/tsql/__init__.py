"""T-SQL scripts: read into statements and problems, and applied to what one instance holds."""

from routing.importing.tsql.reading import read_file, read_script, servers_in
from routing.importing.tsql.script import Applied, Script, apply_script
from routing.importing.tsql.state import Database, Endpoint, InstanceState, Route, Service
from routing.importing.tsql.statements import Problem, Statement

__all__ = [
    "Applied",
    "Database",
    "Endpoint",
    "InstanceState",
    "Problem",
    "Route",
    "Script",
    "Service",
    "Statement",
    "apply_script",
    "read_file",
    "read_script",
    "servers_in",
]
