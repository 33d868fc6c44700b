"""The catalogue of lint's findings: code, severity, title, advice and SQL Server's number of each.

Codes are numbered once and never reused; a page of `pages/` explains each.
"""

from __future__ import annotations

from dataclasses import dataclass

from routing.terms import Word


class Severity(Word):
    """The severity of a finding, worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class LintRule:
    """One kind of finding.

    ``error_number`` is the engine's, where it has one for every row of the kind. ``is_default``: every instance
    has it as it was installed; it is printed as one count, so that it does not bury what somebody did.
    """

    code: str
    severity: Severity
    title: str
    advice: str
    error_number: int | None = None
    is_default: bool = False


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO
_HANDSHAKE = (
    "where that cannot be, let the target do what must happen once only after the initiator's second message,"
    " which carries the broker instance that the dialog is bound to"
)

FINDINGS: tuple[LintRule, ...] = (
    LintRule("SBR001", _W, "An option of a route is empty text", "leave the option out", 9659),
    LintRule(
        "SBR002", _E, "An option of a route is too long", "correct the text: the engine holds no such route", 9660
    ),
    LintRule(
        "SBR003",
        _E,
        "A mirror address without service name and broker instance",
        "name the service and the database's broker instance as well",
        9661,
    ),
    LintRule(
        "SBR004",
        _E,
        "A broker instance without a service name",
        "name the service: the route matches no message",
        9662,
    ),
    LintRule(
        "SBR005",
        _E,
        "A mirror address beside LOCAL or TRANSPORT",
        "give the principal's tcp address, or leave the mirror out",
        9743,
    ),
    LintRule("SBR006", _E, "An address outside the grammar", "write LOCAL, TRANSPORT or tcp://HOST:PORT", 9744),
    LintRule(
        "SBR007",
        _E,
        "TRANSPORT with a service name",
        "leave the service name out, or give the address of the service",
        9745,
    ),
    LintRule("SBR008", _E, "A lifetime outside its range", "set a lifetime of 1 to 2147483647 seconds", 9746),
    LintRule(
        "SBR009", _E, "Address and mirror address are the same", "name the mirroring partner's address", 9747
    ),
    LintRule("SBR010", _E, "A row that breaks the contract of its table", "correct the row: resolve refuses it"),
    LintRule(
        "SBR011",
        _E,
        "A BrokerConfiguration route with a broker instance",
        "leave the broker instance out: requests for routes are sent without one",
    ),
    LintRule(
        "SBR012",
        _E,
        "Two databases of an instance with one broker instance",
        "give the copy a broker instance of its own: ALTER DATABASE … SET NEW_BROKER",
        9772,
    ),
    LintRule(
        "SBR013",
        _W,
        "One broker instance in databases of several instances",
        "give the copy a broker instance of its own (SET NEW_BROKER), unless these are replicas",
    ),
    LintRule(
        "SBR014",
        _I,
        "A database with one broker instance on several instances",
        "nothing, if these are replicas of one database; else SET NEW_BROKER on the copy",
    ),
    LintRule(
        "SBR015",
        _W,
        "A route pinned to a broker instance that no database has",
        "look up service_broker_guid in sys.databases of the target, and give it to the route by ALTER ROUTE",
        9795,
    ),
    LintRule(
        "SBR016",
        _W,
        "A service name that is nearly another's",
        "spell the name as the target does: names are compared exactly",
    ),
    LintRule(
        "SBR017",
        _W,
        "Load-balancing routes behind a route without broker instance",
        "give every route of the service a broker instance, or drop the one without",
    ),
    LintRule(
        "SBR018",
        _W,
        "Open routes to several instances of a service",
        f"give each route its broker instance: one dialog may get two target endpoints; {_HANDSHAKE}",
    ),
    LintRule(
        "SBR019",
        _W,
        "A service in several databases of an instance",
        "name the broker instance in routes and BEGIN DIALOG, or keep the service in one database",
    ),
    LintRule(
        "SBR020",
        _E,
        "No return route",
        "create a route to the initiator's service in the target's database",
    ),
    LintRule(
        "SBR021",
        _E,
        "msdb has no match for a service that others route here",
        "create a route for the service in msdb",
        9793,
    ),
    LintRule(
        "SBR022",
        _E,
        "A service that others route here is not here",
        "correct the routes that lead here, or forward the service in msdb",
    ),
    LintRule(
        "SBR023",
        _I,
        "A service that only AutoCreatedLocal serves",
        "create a route for the service in msdb, so that it does not depend on AutoCreatedLocal",
        is_default=True,
    ),
    LintRule(
        "SBR024",
        _I,
        "A service that AutoCreatedLocal would serve were it not missing",
        "create a route for the service in msdb if dialogs from outside are to reach it without its broker"
        " instance",
        9793,
    ),
    LintRule(
        "SBR025",
        _E,
        "Forwarding needed but off",
        "turn it on: ALTER ENDPOINT … FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED); or drop the route",
        9792,
    ),
    LintRule(
        "SBR026",
        _E,
        "A forwarding loop",
        "point one of the routes at the instance that holds the service",
    ),
    LintRule(
        "SBR027",
        _W,
        "A route shadowed for every key",
        "drop the route, or change the one that always comes first",
    ),
    LintRule("SBR028", _I, "A route that no message used", "drop the route if nothing will need it"),
    LintRule(
        "SBR029",
        _W,
        "A route has expired",
        "drop the route, or give it a later lifetime: ALTER ROUTE … WITH LIFETIME",
    ),
    LintRule("SBR030", _W, "A route expires soon", "extend it: ALTER ROUTE … WITH LIFETIME"),
    LintRule("SBR031", _W, "An address without a port", "write the port of the target's endpoint"),
    LintRule(
        "SBR032",
        _W,
        "A port that is not the endpoint's",
        "write the port of the Service Broker endpoint on that host",
    ),
    LintRule(
        "SBR033",
        _W,
        "Dynamic routing takes messages for a service of this instance",
        "create a LOCAL route for each service of the instance: step 4 comes before AutoCreatedLocal (step 5)",
        9770,
    ),
    LintRule(
        "SBR034",
        _W,
        "The broker of a database is disabled",
        "turn it on: ALTER DATABASE … SET ENABLE_BROKER",
        9791,
    ),
    LintRule(
        "SBR035",
        _E,
        "The broker of msdb is disabled",
        "turn it on: ALTER DATABASE msdb SET ENABLE_BROKER; nothing from the network is routed without",
        9789,
    ),
    LintRule(
        "SBR036",
        _I,
        "A LOCAL route for every service in msdb",
        "replace it by a route for each service that is to be reached from outside",
        is_default=True,
    ),
    LintRule(
        "SBR037",
        _W,
        "A route to the instance's own address",
        "write LOCAL where the service is in this instance",
    ),
    LintRule(
        "SBR038",
        _W,
        "A conversation group bound to different broker instances",
        "name the broker instance in BEGIN DIALOG where related conversations must meet in one database",
    ),
    LintRule(
        "SBR039",
        _W,
        "Dialogs whose pick changed",
        "change the routes of a balanced service only while none of its dialogs waits for its acknowledgement;"
        f" {_HANDSHAKE}",
    ),
    LintRule(
        "SBR040",
        _W,
        "Forwarding needed and not known",
        "import sys.service_broker_endpoints of the instance; until then forwarding is taken as off",
    ),
    LintRule(
        "SBR041",
        _E,
        "Open dialogs that get several target endpoints",
        "give each route the broker instance of its target, so that each dialog is balanced to one of them;"
        f" {_HANDSHAKE}",
    ),
    LintRule(
        "SBR042",
        _E,
        "A statement that SQL Server refuses",
        "correct the statement: it changes nothing, and of a batch that cannot be parsed nothing runs",
    ),
    LintRule(
        "SBR043",
        _E,
        "Requests for routes that reach no BrokerConfiguration service",
        "create the service where the route leads, correct the route, or drop it: without an answer every dialog"
        " to a service without a route of its own waits for ever",
        9770,
    ),
    LintRule(
        "SBR044",
        _W,
        "A LOCAL route for a service that is not in the instance",
        "create the service, give the route the address of the instance that holds it, or drop it",
        9796,
    ),
    LintRule(
        "SBR045",
        _I,
        "A service that its instance reaches by AutoCreatedLocal alone",
        "create a LOCAL route for the service in each database that sends to it, so that they do not depend on"
        " AutoCreatedLocal",
        is_default=True,
    ),
    LintRule(
        "SBR046",
        _I,
        "An open route to the only broker instance of a service",
        "give the route the broker instance: it is known, and stays right where the service is deployed once more",
    ),
    LintRule(
        "SBR047",
        _W,
        "A load-balancing route that stands twice",
        "drop it: open dialogs are shared out by broker instances, and how many routes name one does not count",
    ),
    LintRule(
        "SBR048",
        _W,
        "A placeholder, or a host that no host can be called",
        "give the real name: a tool or installer did not fill the placeholder in",
    ),
)
BY_CODE: dict[str, LintRule] = {finding.code: finding for finding in FINDINGS}
