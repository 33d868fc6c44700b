"""The pictures of a page, each compiled, by the id of its place; the page's script gives them their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routing.features.report.facts import Report
from routing.features.report.pictures import bar_lanes, by_lane, over_time, sharing, theme
from routing.features.report.pictures.estate_picture import estate
from routing.features.report.pictures.runtime import to_vega
from routing.features.report.report_network import ReportNetwork

LANES = {"strips": over_time.STRIPS, "instances": by_lane.INSTANCES, "services": by_lane.SERVICES}
"""How many lanes of their own pictures have."""
_NO_ROWS: tuple[str, ...] = ("rows", "estate_edges", "estate_stops")
Spec = dict[str, Any]


BALANCE = "balance"
"""The id of the specification that every balance's picture has; only their rows differ."""


def draw(report: Report, network: ReportNetwork) -> dict[str, Spec]:
    """Draw all pictures; return their specifications by id."""
    charts: dict[str, Any] = {
        "instances-picture": by_lane.outcomes_by_instance(report.flows),
        "reasons-picture": by_lane.reasons_of_trouble(report.flows),
        "stuck-picture": by_lane.most_stuck(report.flows),
    }
    if report.series is not None:
        charts["times-picture"] = over_time.outcomes_over_time(report.series)
        charts["delays-picture"] = over_time.delays_by_service(report.series)
    if report.balances:
        charts[BALANCE] = sharing.balance(report.balances[0])
    specs = {name: _without_rows(to_vega(chart)) for name, chart in charts.items()}
    specs["estate-picture"] = _without_rows(estate(network, theme.by_style_sheet()))
    return specs


def rows_of_balances(report: Report, names: Sequence[str]) -> dict[str, list[bar_lanes.Row]]:
    """Return the rows of balances' pictures, by the ids of these: the first ones that have any dialogs."""
    picked = [one for one in report.balances or () if one.picks]
    return {name: sharing.pick_rows(one) for name, one in zip(names, picked, strict=False)}


def _without_rows(spec: Spec) -> Spec:
    """Return the specification without what the page's script fills in."""
    for one in spec["data"]:
        if one["name"] in _NO_ROWS and "values" in one:
            one["values"] = []
    return spec
