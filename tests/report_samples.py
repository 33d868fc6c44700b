"""Reports to look at and to test with: one written by hand, with hostile names, and a huge one."""

from __future__ import annotations

from datetime import datetime, timezone

from routing.engines.traffic_tables import TimePoint
from routing.result_schemas import FINDINGS, ROUTE_COVERAGE
from routing.tables.arrow_rows import SchemaRows
from routing.views.page.facts import (
    BalancedInstance,
    ContradictedEpisodes,
    DialogBalance,
    EstateInstance,
    MessageFlow,
    MessageSeries,
    NeverPicked,
    ObservedCause,
    ObservedCounts,
    Report,
    ReportChanges,
    RouteChange,
    WordCount,
)

SCRIPT = "</script><script>alert(1)</script>"
QUOTES = """it's "all" `here` <img src=x onerror="alert(2)"> &amp; {{ 7*7 }} {% raw %} ${y}"""
RIGHT_TO_LEFT = "//pay\u202egnp.exe\u202c\u2067\u05e9\u05dc\u05d5\u05dd\u2069"
EMOJI = "//\U0001f4e6/caf\u00e9/\u5b57"
LONG = "//example.com/" + "a-very-long-name-without-any-blank/" * 6 + "end"
HOSTILE = (SCRIPT, QUOTES, RIGHT_TO_LEFT, EMOJI, LONG)

HUB, SPOKE, EDGE = "HUB\\PROD", "spoke.example.com", "EDGE<1>"
STOCK, BILLING = "//example.com/stock", "//example.com/billing"
BILLING_ADDRESS, SPOKE_ADDRESS = "tcp://billing.example.org:4022", "tcp://spoke.example.com:4022"
IDS = tuple(f"{number}0000000-0000-4000-8000-00000000000{number}" for number in range(1, 6))
_HOUR = 3_600
_MICROS = 1_000_000


def at(text: str) -> int:
    """Microseconds since 1970 of a time such as 2026-01-05T09:00, UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()) * _MICROS


def _flow(
    sender: str, service: str, verdict: str, messages: int, oldest: str, *route_columns: str | None
) -> MessageFlow:
    """Return messages of ``instance/database``.

    ``verdict`` is outcome and reason, ``route_columns`` route, address and destination.
    """
    instance, _, database = sender.partition("/")
    outcome, _, reason = verdict.partition(" ")
    route, address, destination = (*route_columns, None, None, None)[:3]
    enqueued = at(f"2026-01-{oldest}")
    decision = (reason or None, route, address, destination)
    return MessageFlow(instance, database or None, service, outcome, *decision, messages, enqueued)


# In all: DELIVERED 1,320, SENT 340, DELAYED 158, FORWARDED 60, DROPPED 9, NOT_KNOWN 5; 1,892 messages.
FLOWS = (
    _flow(f"{HUB}/Shop", STOCK, "DELIVERED LOCAL_SERVICE", 1200, "05T06:00", "Stock", "LOCAL", "Stock"),
    _flow(f"{HUB}/Shop", BILLING, "SENT NETWORK_ADDRESS", 340, "05T06:01", "Bill", BILLING_ADDRESS),
    _flow(f"{HUB}/Shop", BILLING, "DELAYED NO_ROUTE", 45, "04T21:30"),
    _flow(HUB, RIGHT_TO_LEFT, "FORWARDED NETWORK_ADDRESS", 60, "05T07:00", "Spoke", SPOKE_ADDRESS),
    _flow(SPOKE, RIGHT_TO_LEFT, "DELIVERED LOCAL_SERVICE", 58, "05T07:00", "Pay", "LOCAL", "Pay & Co"),
    _flow(SPOKE, RIGHT_TO_LEFT, "DROPPED BROKER_INSTANCE_NOT_FOUND", 2, "05T07:30", "Pay", "LOCAL"),
    _flow(f"{SPOKE}/Pay & Co", SCRIPT, "DELAYED SERVICE_NOT_FOUND", 101, "02T03:04", QUOTES, "LOCAL"),
    _flow(f"{EDGE}/Orders", EMOJI, "DELIVERED LOCAL_SERVICE", 62, "05T08:00", None, "LOCAL", "Orders"),
    _flow(f"{EDGE}/Orders", LONG, "DELAYED BROKER_DISABLED", 12, "05T10:00", LONG, "LOCAL"),
    _flow(EDGE, QUOTES, "DROPPED FORWARDING_DISABLED", 7, "05T10:15", "Spoke", SPOKE_ADDRESS),
    _flow(f"{EDGE}/Orders", STOCK, "NOT_KNOWN", 5, "05T11:00"),
)


def _point(hour: int, instance: str, service: str, outcome: str, messages: int) -> TimePoint:
    return TimePoint(at(f"2026-01-05T{hour:02d}:00"), instance, service, outcome, messages)


# The same messages by the hour in which they were decided.
POINTS = (
    _point(6, HUB, STOCK, "DELIVERED", 300),
    _point(7, HUB, STOCK, "DELIVERED", 500),
    _point(9, HUB, STOCK, "DELIVERED", 400),
    _point(6, HUB, BILLING, "SENT", 140),
    _point(8, HUB, BILLING, "SENT", 200),
    _point(6, HUB, BILLING, "DELAYED", 5),
    _point(10, HUB, BILLING, "DELAYED", 40),
    _point(7, HUB, RIGHT_TO_LEFT, "FORWARDED", 60),
    _point(7, SPOKE, RIGHT_TO_LEFT, "DELIVERED", 58),
    _point(7, SPOKE, RIGHT_TO_LEFT, "DROPPED", 2),
    _point(6, SPOKE, SCRIPT, "DELAYED", 1),
    _point(8, SPOKE, SCRIPT, "DELAYED", 100),
    _point(8, EDGE, EMOJI, "DELIVERED", 62),
    _point(10, EDGE, LONG, "DELAYED", 12),
    _point(10, EDGE, QUOTES, "DROPPED", 7),
    _point(11, EDGE, STOCK, "NOT_KNOWN", 5),
)

BALANCES = (
    DialogBalance(
        HUB,
        "Shop",
        STOCK,
        at("2026-01-05T00:00"),
        None,
        (
            BalancedInstance(IDS[0], f"{HUB}.Stock", 48, 50.0, 37, 63),
            BalancedInstance(IDS[1], f"{SPOKE}.Stock", 52, 50.0, 37, 63),
            BalancedInstance(IDS[2], None, 80, 50.0, 37, 63),
            BalancedInstance(IDS[3], f"{EDGE}.{SCRIPT}", 20, 50.0, 37, 63),
        ),
        (NeverPicked(IDS[4], QUOTES, "EXPIRED", "the route's lifetime ended at 2026-01-01 00:00:00"),),
        None,
    ),
    DialogBalance(
        EDGE,
        "Orders",
        EMOJI,
        None,
        None,
        (
            BalancedInstance(IDS[0], f"{HUB}.Stock", 3, 2.5, None, None),
            BalancedInstance(IDS[1], None, 2, 2.5, None, None),
        ),
        (
            NeverPicked(IDS[2], "Twice", "DOUBLED", "another database of the estate has the same id"),
            NeverPicked(IDS[3], "Behind", "SHADOWED", "the route Nearer has the same service and comes before"),
        ),
        "the expected number of dialogs is below 5",
    ),
)

_FINDINGS = (
    ("SBR012", "error", HUB, "Shop", QUOTES, "no such service", "name a service that is there", 9796),
    (
        "SBR028",
        "warning",
        SPOKE,
        "Pay & Co",
        SCRIPT,
        f"the route {SCRIPT} was used by no message",
        "drop it",
        None,
    ),
    ("SBR030", "info", EDGE, None, None, f"{EMOJI} has no activation", "nothing", None),
)
_COVERAGE = ((HUB, 12, 9), (SPOKE, 4, 4), (EDGE, 3, 0))

CHANGES = ReportChanges(
    "run-before",
    at("2026-01-04T23:00"),
    False,
    (
        WordCount("DELIVERED", 1400, 1320),
        WordCount("SENT", 340, 340),
        WordCount("DELAYED", 0, 101),
        WordCount("DROPPED", 3, 0),
    ),
    (
        WordCount("LOCAL_SERVICE", 1400, 1320),
        WordCount("NETWORK_ADDRESS", 340, 340),
        WordCount("SERVICE_NOT_FOUND", 0, 101),
        WordCount("HOP_LIMIT", 3, 0),
    ),
    (
        RouteChange(HUB, "Shop", "Bill", "CHANGED", f"address: tcp://old.example.org:4022 -> {BILLING_ADDRESS}"),
        RouteChange(SPOKE, "Pay & Co", QUOTES, "ADDED", f"service {SCRIPT}, address LOCAL"),
        RouteChange(EDGE, "Orders", "Gone", "REMOVED", "address was tcp://gone.example.org:4022"),
    ),
)

PLACES = (
    EstateInstance(HUB, ("tcp://hub.example.com:4022",), ("Shop", "Stock")),
    EstateInstance(SPOKE, (SPOKE_ADDRESS,), ("Pay & Co", "Stock")),
    EstateInstance(EDGE, (), ("Orders", SCRIPT)),
)


def sample_report() -> Report:
    """A report of three instances with all its parts."""
    return Report(
        headline="Run run-now ended 2026-01-05T12:00:00Z: 1,895 messages read, 1,892 resolved, 3 rejected",
        not_known=(
            "3 messages were rejected: their fate is not told here.",
            f"The services of {EDGE} are not known.",
        ),
        made_at=at("2026-01-06T09:00"),
        flows=FLOWS,
        places=PLACES,
        series=MessageSeries(_HOUR, POINTS),
        balances=BALANCES,
        findings=SchemaRows(FINDINGS, tuple(dict(zip(FINDINGS.names, row, strict=True)) for row in _FINDINGS)),
        coverage=SchemaRows(
            ROUTE_COVERAGE, tuple(dict(zip(ROUTE_COVERAGE.names, row, strict=True)) for row in _COVERAGE)
        ),
        changes=CHANGES,
        observed=OBSERVED,
    )


OBSERVED = ObservedCounts(
    {(HUB, "CONFIRMED"): 1_200, (HUB, "CONTRADICTED"): 30, (HUB, "NOT_OBSERVED"): 9, (SPOKE, "COMPATIBLE"): 70},
    [ObservedCause(HUB, "ROUTE_CHANGED", "route 'Stock' changed between noon and one", 30)],
    [
        ContradictedEpisodes(HUB, "Shop", STOCK, "SENT", None, "DELAYED", "NO_ROUTE", "SQL Server sent it.", 20),
        ContradictedEpisodes(HUB, None, BILLING, "DELAYED", 9796, "DELIVERED", "LOCAL_SERVICE", None, 10),
    ],
)


def bare_report() -> Report:
    """Return the same report without optional facts."""
    return Report("1,892 messages", (), at("2026-01-06T09:00"), FLOWS, PLACES)


def huge_report(instances: int = 2_000, services: int = 20, steps: int = 96) -> Report:
    """Return thousands of instances with long names, each with messages to its own services over many time steps.

    Every instance has ``services`` flows, of 1 message, 2, 3 and so on. One in four is delayed.
    """
    fates = (
        ("DELIVERED", "LOCAL_SERVICE"),
        ("SENT", "NETWORK_ADDRESS"),
        ("DELAYED", "NO_ROUTE"),
        ("DROPPED", "HOP_LIMIT"),
    )
    names = [f"instance-{number:05d}.{'long-name.' * 9}example.com" for number in range(instances)]
    flows, points, start = [], [], at("2026-01-05T00:00")
    for place, name in enumerate(names):
        for number in range(services):
            outcome, reason = fates[number % len(fates)]
            service = f"//{name}/{SCRIPT}/{number}"
            route, address = f"route to {service}", f"tcp://{names[(place * 7 + number) % instances]}:4022"
            flows.append(
                MessageFlow(
                    name, "Sales", service, outcome, reason, route, address, None, number + 1, start + place
                )
            )
            moment = start + (place * 13 + number * 5) % steps * _HOUR * _MICROS
            points.append(TimePoint(moment, name, service, outcome, number + 1))
    finding = dict(zip(FINDINGS.names, _FINDINGS[1], strict=True))
    # Each shares a service out to three hundred ids, and to as many that are never picked.
    picks = [
        BalancedInstance(f"{IDS[0][:-4]}{number:04d}", f"{names[-1]}.Sales", number, 150.0, 127, 174)
        for number in range(300)
    ]
    never = [
        NeverPicked(f"{IDS[1][:-4]}{number:04d}", "Old", "EXPIRED", "the route's lifetime ended")
        for number in range(300)
    ]
    changes = [RouteChange(name, "Sales", f"route {name}", "ADDED", SCRIPT * 3) for name in names]
    return Report(
        headline=f"{sum(flow.messages for flow in flows):,} messages",
        not_known=tuple(f"The services of {name} are not known." for name in names),
        made_at=at("2026-01-10T00:00"),
        flows=flows,
        places=[EstateInstance(name, (f"tcp://{name}:4022",), ("Sales", "Stock")) for name in names],
        series=MessageSeries(_HOUR, points),
        balances=[
            DialogBalance(name, "Sales", f"//{name}/shared", None, None, picks, never, None) for name in names
        ],
        findings=SchemaRows(FINDINGS, tuple({**finding, "instance_name": name} for name in names)),
        coverage=SchemaRows(
            ROUTE_COVERAGE, tuple({"instance_name": name, "routes": 10, "used": 7} for name in names)
        ),
        changes=ReportChanges(
            "run-before", start, False, [WordCount("SENT", 1, 2)], [WordCount("NETWORK_ADDRESS", 1, 2)], changes
        ),
    )
