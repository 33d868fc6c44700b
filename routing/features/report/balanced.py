"""The section of the page that tells how evenly dialogs are shared out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routing.features.report.facts import BalancedInstance, DialogBalance
from routing.features.report.filling import instant
from routing.features.report.message_cells import size_of
from routing.features.report.page_tables import MOST_BYTES, NAME, NUMBER, TEXT, WORD, PageSection, table, words

_SERVICES = 30
"""So many balanced services are shown, or fewer where their tables are long."""
# What a row takes besides its texts.
_ROW = 150


def balance_section(balances: Sequence[DialogBalance]) -> PageSection:
    """Return every balanced service as a part, in the given order, as many as there is room for."""
    parts: list[PageSection] = []
    room = MOST_BYTES
    for one in balances[:_SERVICES]:
        part = _shared(one, f"balance-{len(parts)}")
        room -= sum(_ROW + sum(map(size_of, row)) for page_table in part.tables for row in page_table.rows)
        if parts and room < 0:
            break
        parts.append(part)
    introduction = (
        "Dialogs are shared out among the broker ids of equal routes. The band is where 95 of 100 fair"
        " choices end."
        if balances
        else "No service is balanced among several broker ids."
    )
    left = len(balances) - len(parts)
    return PageSection(
        "balance",
        "DialogBalance",
        "DialogBalance",
        introduction,
        parts=parts,
        more=f"and {left:,} more services" if left else "",
    )


def _shared(one: DialogBalance, name: str) -> PageSection:
    heads = (
        ("Broker id", WORD),
        ("Database", ""),
        ("Dialogs", NUMBER),
        ("Expected", NUMBER),
        ("Band", NUMBER),
        ("Where", WORD),
    )
    picks = [_pick(pick) for pick in one.picks]
    tables = [table(name, "Dialogs of each broker id", heads, picks, "no dialog was shared out")]
    if one.never:
        names = (("Broker id", WORD), ("Route", NAME), ("Why", WORD), ("In words", TEXT))
        never = [(id_.broker_instance, id_.route, id_.why, id_.words) for id_ in one.never]
        tables.append(table(f"{name}-never", "Routes that name a broker id in vain", names, never))
    title = f"{words(one.service)} from {words(one.instance)}.{words(one.database)}"
    return PageSection(name, title, "", _judged(one), [f"{name}-picture"] if one.picks else (), tables)


def _pick(pick: BalancedInstance) -> tuple[Any, ...]:
    is_fair = pick.low <= pick.dialogs <= pick.high
    band = f"{pick.low:,.0f} to {pick.high:,.0f}"
    position = "in the band" if is_fair else "above the band" if pick.dialogs > pick.high else "below the band"
    return pick.broker_instance, pick.owner, pick.dialogs, pick.expected, band, position


def _judged(one: DialogBalance) -> str:
    """Return the span of time, and what chance says of the shares."""
    since = None if one.since is None else f"since {instant(one.since)}"
    until = None if one.until is None else f"until {instant(one.until)}"
    span = " ".join(word for word in (since, until) if word)
    when = f"The set of ids has been the same {span}." if span else "The set of ids was always the same."
    if one.p_value is None:
        return f"{when} No p-value: {words(one.no_p_value or 'it was not asked for')}."
    value = "less than 0.0001" if one.p_value < 0.0001 else f"{one.p_value:.4f}"
    return f"{when} p-value {value}, corrected for the number of services."
