"""The rule book's path of a judged message as lines: what it brings, its searches, the verdict.

Every finding is read off the trace of the plan (`plan.LEG_TRACE`); nothing is decided here.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import choosing
from routing.analysis.explaining import candidates, listing
from routing.analysis.explaining.judging import Judged
from routing.analysis.explaining.lines import (
    BROKER,
    LOCATION,
    MESSAGE,
    REPLY,
    SCOPE,
    SHOWN,
    STEP,
    TIER,
    TRANSPORT,
    VERDICT,
    Line,
    exploded,
    ordered,
    part,
)
from routing.analysis.explaining.searches import Search, complete, searches
from routing.choosing import Tier
from routing.joining import bounded
from routing.terms import MatchingStep, Reason


def steps(judged: Judged, *, is_as_of: bool) -> DataFrame:
    """All lines of all questions, in the schema `lines.STEPS`; ``is_as_of``: one time was set for all messages."""
    verdict = judged.verdicts.select("question", F.col("reason").alias("verdict_reason"))
    traced = complete(judged.traced)
    # A question has one verdict.
    with_verdict = traced.join(bounded(verdict), "question", how="left")
    # Without own addresses nothing comes back.
    told = searches() if judged.job.uses.own_addresses else searches()[:1]
    line = Line()
    fixed = _message_lines(line, is_as_of=is_as_of)
    for search in told:
        fixed += _search_lines(line, search)
    parts = [
        exploded(with_verdict, fixed),
        _verdict_lines(line, judged.verdicts),
        listing.id_lines(line, judged.possible, traced),
    ]
    for search in told:
        routes = candidates.route_lines(line, listing.searched(traced, search), judged.job.settings.routes)
        parts += [routes, listing.holder_lines(line, traced, search)]
        if judged.requests is not None:
            parts.append(listing.request_lines(line, traced, search, judged.requests))
    return ordered(parts)


def _message_lines(line: Line, *, is_as_of: bool) -> list[Column]:
    """What the message brings (section 0)."""
    bound, own, acknowledged = F.col("bound_broker"), F.col("named_broker"), F.col("acknowledged")
    moment = (
        F.when(F.lit(is_as_of), "AS_OF")
        .when(F.col("is_described"), "ASKED")
        .when(F.col("observed_at").isNotNull(), "OBSERVED")
        .when(F.col("observed_at").isNull(), "ENQUEUED")
    )
    source = (
        F.when(bound.isNull(), "OPEN")
        .when(own.isNotNull(), "MESSAGE")
        .when(acknowledged.isNotNull(), "ACKNOWLEDGEMENT")
        .when(acknowledged.isNull(), "FAR_BROKER_INSTANCE")
    )
    is_later = acknowledged.isNull() & F.col("acknowledged_broker").isNotNull()
    return [
        line(
            MESSAGE,
            "MESSAGE",
            F.when(F.col("is_described"), "DESCRIBED").otherwise("STORED"),
            name=F.col("message_id"),
            service_name=F.col("to_service_name"),
            database_name=F.col("database_name"),
            reason=F.when(F.col("is_initiator"), "INITIATOR").otherwise("TARGET"),
        ),
        line(MESSAGE, "TIME", moment, rank=1, at=F.col("decided_at")),
        line(
            MESSAGE,
            "BROKER_INSTANCE",
            source,
            rank=2,
            broker_instance=bound,
            at=F.when(source == "ACKNOWLEDGEMENT", F.col("acknowledged_at")),
        ),
        F.when(
            is_later,
            line(
                MESSAGE,
                "ACKNOWLEDGEMENT",
                "LATER",
                rank=3,
                broker_instance=F.col("acknowledged_broker"),
                at=F.col("acknowledged_at"),
            ),
        ),
        F.when(F.col("is_expired"), line(MESSAGE, "DIALOG", "EXPIRED", rank=4, at=F.col("dialog_lifetime"))),
    ]


def _search_lines(line: Line, search: Search) -> list[Column]:
    """One search: its scope, section 1, the broker's check, the steps, the tiers, the location, the transport."""
    lines = [*_scope_lines(line, search), *_step_lines(line, search), *_tier_lines(line, search)]
    lines += [_location_line(line, search), *_transport_lines(line, search)]
    return lines


def _scope_lines(line: Line, search: Search) -> list[Column]:
    leg, where = search.leg, part(search.number, SCOPE)
    first, _ = searches()
    origin = F.when(search.from_network, "ARRIVED").otherwise("SENT_HERE") if search.number == 1 else "CAME_BACK"
    reply = (
        F.when(leg["is_reply"], "MATCHED")
        .when(F.col("is_initiator"), "SENT_BY_INITIATOR")
        .when(search.broker.isNull(), "OPEN")
        .when(search.broker.isNotNull(), "NOT_HERE")
    )
    came_by = {"name": first.leg["route_name"], "address": first.address} if search.number == 2 else {}
    common = {"search": search.number}
    return [
        F.when(
            search.takes_place,
            line(where, "SCOPE", origin, **common, database_name=search.scope, **came_by),
        ),
        F.when(
            search.takes_place & search.from_network,
            line(part(search.number, REPLY), "REPLY", reply, **common, step=0, broker_instance=search.broker),
        ),
        F.when(
            search.takes_place & ~leg["is_reply"],
            line(
                part(search.number, BROKER),
                "BROKER",
                F.when(leg["is_enabled"], "ENABLED").otherwise("DISABLED"),
                **common,
                database_name=search.scope,
            ),
        ),
    ]


def _step_lines(line: Line, search: Search) -> list[Column]:
    leg, stop = search.leg, search.stop
    lines = []
    for step in MatchingStep:
        if step == MatchingStep.REPLY:
            continue
        passed = F.lit("NO_MATCH")
        if step == MatchingStep.ROUTE_REQUEST:
            passed = F.when(leg["asks"], "PENDING").otherwise("NO_MATCH")
        finding = (
            F.when(stop < int(step), "NOT_REACHED")
            .when(stop == int(step), "MATCHED")
            .when(stop > int(step), passed)
        )
        lines.append(
            F.when(
                search.searches,
                line(
                    part(search.number, STEP),
                    "STEP",
                    finding,
                    search=search.number,
                    step=int(step),
                    broker_instance=search.broker,
                ),
            )
        )
    return lines


def _tier_lines(line: Line, search: Search) -> list[Column]:
    """The tiers that have routes, and which was used (section 3)."""
    leg, tier = search.leg, search.leg["tier"]
    lines = []
    for letter in Tier:
        # As `routes_of` sorts them; a route with a mirror address stands in tier A alone.
        routes = choosing.routes_of(F.lit(letter.value), leg["matches"])
        if letter != Tier.MIRROR:
            routes = F.filter(routes, lambda route: route["mirror_address"].isNull())
        finding = (
            F.when(tier == letter.value, "USED").when(tier < letter.value, "NOT_REACHED").otherwise("NOT_USABLE")
        )
        why = {Tier.LOCAL: leg["not_located"], Tier.TRANSPORT: F.lit(str(Reason.TRANSPORT_ADDRESS_INVALID))}
        lines.append(
            F.when(
                search.is_told & ~leg["is_reply"] & (F.size(routes) > 0),
                line(
                    part(search.number, TIER),
                    "TIER",
                    finding,
                    search=search.number,
                    name=letter.value,
                    routes=F.slice(routes["name"], 1, SHOWN),
                    count=F.size(routes),
                    reason=F.when(finding == "NOT_USABLE", why.get(letter, F.lit(None))),
                ),
            )
        )
    return lines


def _location_line(line: Line, search: Search) -> Column:
    leg = search.leg
    found = leg["destination"].isNotNull()
    return F.when(
        search.locates,
        line(
            part(search.number, LOCATION),
            "LOCATION",
            F.when(found, "LOCATED").otherwise("NOT_LOCATED"),
            search=search.number,
            database_name=leg["destination"],
            service_name=F.col("to_service_name"),
            broker_instance=search.known,
            reason=F.when(~found, leg["not_located"]),
            count=F.size("choice.trace.holders"),
        ),
    )


def _transport_lines(line: Line, search: Search) -> list[Column]:
    """What an address meets: an own address, forwarding, the hops (section 3)."""
    leg, where = search.leg, part(search.number, TRANSPORT)
    is_sent = search.is_told & F.coalesce(leg["tier"] != Tier.LOCAL.value, F.lit(False))
    forwarded = is_sent & search.from_network
    forwarding = F.col("choice.trace.is_forwarding")
    hops = F.col("hops_remaining")
    left = (
        F.when(hops.isNull(), "NO_LIMIT")
        .when(F.col("verdict_reason") == str(Reason.HOP_LIMIT), "NONE_LEFT")
        .when(F.col("verdict_reason") != str(Reason.HOP_LIMIT), "LEFT")
    )
    common = {"search": search.number}
    return [
        F.when(forwarded, line(where, "FORWARDING", F.when(forwarding, "ON").otherwise("OFF"), **common)),
        F.when(forwarded & leg["counts_hops"], line(where, "HOPS", left, rank=1, **common, count=hops)),
        F.when(
            is_sent & leg["is_own"],
            line(
                where,
                "OWN_ADDRESS",
                F.when(search.from_network, "LOOP").otherwise("COMES_BACK"),
                rank=2,
                **common,
                name=leg["route_name"],
                address=search.address,
            ),
        ),
    ]


def _verdict_lines(line: Line, verdicts: DataFrame) -> DataFrame:
    decided = F.col("outcome").isNotNull()
    return verdicts.select(
        "question",
        line(
            VERDICT,
            "OUTCOME",
            F.when(decided, "DECIDED").otherwise("DEPENDS_ON_DIALOG"),
            outcome=F.col("outcome"),
            reason=F.col("reason"),
            name=F.col("route_name"),
            address=F.col("address"),
            mirror_address=F.col("mirror_address"),
            database_name=F.col("destination_database"),
            broker_instance=F.col("broker_instance"),
        ).alias("line"),
    )
