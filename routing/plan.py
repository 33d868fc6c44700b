"""The routing plan: distinct routing keys × routes → what the rules decide for each key and time.

Small, printable, testable without messages. Columns of a plan: `keys.KEY`, valid_from (inclusive) and valid_to
(exclusive), null where unbounded, and choices, an array of `CHOICE` of which the dialog-ID hash takes one.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import choosing, intervals, locating, matching, text
from routing.configuration import Configuration, Features
from routing.joining import bounded
from routing.keys import ADDRESS_ELSEWHERE, KEY, OWN_ADDRESS, opened
from routing.terms import BROKER_CONFIGURATION_SERVICE, MSDB, MatchingStep, Outcome

# The fields of a choice. reads_address: the address is to be read from the message's service name.
# counts_hops: HOP_LIMIT where no hops remain. asks, asks_msdb: step 4 is reached in the scope, or in msdb after
# the message came back; with a pending request the choice stands, else a request is opened.
CHOICE = (
    "outcome",
    "reason",
    "matching_step",
    "broker_instance",
    "route_name",
    "address",
    "mirror_address",
    "destination_database",
    "alternative_routes",
    "rerouted_from",
    "reads_address",
    "counts_hops",
    "asks",
    "asks_msdb",
)
# What led a leg to its choice, for those who explain it (`routing_plan` with ``traced``).
LEG_TRACE = (
    "is_reply",
    "is_enabled",
    "step",
    "asks",
    "pick",
    "matches",
    "tier",
    "routes",
    "destination",
    "not_located",
    "is_own",
    "counts_hops",
    "outcome",
    "reason",
    "route_name",
    "address",
    "reads_address",
)
_TIME = ("valid_from", "valid_to")
_CANDIDATE = (
    "name",
    "service",
    "broker",
    "live_from",
    "live_to",
    "address",
    "mirror_address",
    "kind",
    "same_address",
)


@dataclass(frozen=True)
class _Leg:
    """One search of a routing table: the message's own scope, or msdb once it has come back.

    ``name`` prefixes the leg's columns; ``broker`` is the id the message brings to it, null while open;
    ``takes_place`` is whether the message gets there.
    """

    name: str
    returned: bool
    is_from_network: Column
    sender: Column
    broker: Column
    takes_place: Column

    def column(self, what: str) -> Column:
        """A column of this leg."""
        return F.col(f"{self.name}_{what}")


def routing_plan(keys: DataFrame, settings: Configuration, uses: Features, *, traced: bool = False) -> DataFrame:
    """Decide for every distinct key; one row a key and interval of time.

    ``traced`` adds a field ``trace`` to each choice: struct(first, again, holders, is_forwarding), the legs
    as structs of `LEG_TRACE`, all null in again where there was no second search.
    """
    timed = _timed(_in_context(_candidates(keys, settings, uses), settings), uses)
    first = _Leg(
        name="first",
        returned=False,
        is_from_network=F.col("is_from_network"),
        sender=F.col("database_name"),
        broker=F.col("broker"),
        takes_place=F.lit(True),
    )
    decided = _decided(timed, first)
    choice, order = _choice(first), F.struct(first.column("pick").alias("pick"))
    second = _leg_trace(first, F.lit(False))
    if uses.own_addresses:
        again = _Leg(
            name="again",
            returned=True,
            is_from_network=F.lit(True),
            sender=F.lit(None).cast("string"),
            broker=F.coalesce(first.column("pick"), F.col("broker")),
            takes_place=~F.col("is_from_network") & first.column("is_own"),
        )
        decided = _decided(decided, again)
        choice = F.when(again.takes_place, _choice(again, first)).when(~again.takes_place, choice)
        order = F.struct(first.column("pick").alias("pick"), again.column("pick").alias("again"))
        second = _leg_trace(again, again.takes_place)
    if traced:
        legs = _leg_trace(first, F.lit(True)).alias("first"), second.alias("again")
        choice = choice.withField("trace", F.struct(*legs, F.col("holders"), F.col("is_forwarding")))
    sorted_choices = F.sort_array(F.collect_list(F.struct(order.alias("order"), choice.alias("choice"))))
    return decided.groupBy(*KEY, *_TIME).agg(F.transform(sorted_choices, lambda c: c["choice"]).alias("choices"))


def _candidates(keys: DataFrame, settings: Configuration, uses: Features) -> DataFrame:
    """Keys with the routes that can match them: those of the scope, and of msdb where a message may return.

    Adds candidates (array of struct, see intervals). A route stands under its service name, or under empty
    text where it has none; a key looks under its own service, under none, and under the BrokerConfiguration
    service. Routes with a broker instance and no service match in no step (D3) and are left out.
    """
    meant = opened(keys)
    services = F.array_distinct(
        F.array_compact(F.array(F.col("service"), F.lit(""), F.lit(BROKER_CONFIGURATION_SERVICE)))
    )
    scopes = [F.struct(F.col("scope_database").alias("database"), F.lit(False).alias("returned"))]
    if uses.own_addresses:
        # msdb is searched again as well: a message sent from msdb may come back to it.
        scopes.append(F.struct(F.lit(MSDB).alias("database"), F.lit(True).alias("returned")))
    searched = F.when(F.col("is_from_network"), F.array(scopes[0])).otherwise(F.array(*scopes))
    probes = meant.withColumn("scope", F.explode(searched)).select(
        *KEY,
        F.col("scope.database").alias("probe_database"),
        F.col("scope.returned").alias("returned"),
        F.explode(services).alias("probe_service"),
    )
    routes = settings.routes.where("service IS NOT NULL OR broker IS NULL").select(
        "instance_name",
        F.col("database_name").alias("probe_database"),
        F.coalesce("service", F.lit("")).alias("probe_service"),
        F.struct(*_CANDIDATE).alias("route"),
    )
    on = ["instance_name", "probe_database", "probe_service"]
    route = F.col("route")
    candidate = F.struct(*(route[name].alias(name) for name in _CANDIDATE), F.col("returned"))
    # The key's columns say all that `opened` does, so it is read from them again after the grouping.
    return opened(
        probes.join(bounded(routes), on, how="left")
        .groupBy(*KEY)
        .agg(F.sort_array(F.collect_list(F.when(route.isNotNull(), candidate))).alias("candidates"))
    )


def _in_context(keys: DataFrame, settings: Configuration) -> DataFrame:
    """Keys with what the configuration says of their instance and service.

    Instances and (instance, service) pairs are distinct: the joins keep the number of rows.
    """
    address = text.address_in_name(F.col("service"))
    is_own_name = F.array_contains("own_addresses", text.comparable_address(address))
    no_holders = F.array().cast(settings.holders.schema["holders"].dataType)
    return (
        keys.join(bounded(settings.instances), "instance_name", how="left")
        .join(bounded(settings.holders), ["instance_name", "service"], how="left")
        .withColumns(
            {
                "holders": F.coalesce("holders", no_holders),
                "own_brokers": F.array_compact(F.transform("databases", lambda d: d["broker"])),
                "disabled": F.transform(F.filter("databases", lambda d: ~d["is_enabled"]), lambda d: d["name"]),
                "name_address": address,
                "has_name_address": address.isNotNull() | (F.col("service_class") >= ADDRESS_ELSEWHERE),
                "is_name_own": (F.col("service_class") == OWN_ADDRESS) | F.coalesce(is_own_name, F.lit(False)),
            }
        )
        .drop("databases")
    )


def _timed(keys: DataFrame, uses: Features) -> DataFrame:
    """Keys × the intervals of time that the bounds of their candidates cut out."""
    if not uses.versions:
        never = F.lit(None).cast("timestamp")
        return keys.withColumns({"valid_from": never, "valid_to": never})
    message = matching.Bound(F.col("service"), F.col("broker"))
    spans = intervals.spans(F.col("candidates"), message)
    timed = keys.withColumn("span", F.explode(spans)).withColumns({name: F.col(f"span.{name}") for name in _TIME})
    in_force = intervals.in_force(F.col("candidates"), F.col("valid_from"), F.col("valid_to"))
    return timed.withColumn("candidates", in_force).drop("span")


def _decided(keys: DataFrame, leg: _Leg) -> DataFrame:
    """Keys with the decision of one leg: sections 1 to 4; one row for each picked broker id."""
    return _chosen(_picked(_matched(keys, leg), leg), leg)


def _matched(keys: DataFrame, leg: _Leg) -> DataFrame:
    """Adds the leg's step (null for a disabled scope), asks, and in_step: the matches of that step by name.

    A reply searches no routes, and comes before the broker check (section 1).
    """
    message = matching.Bound(F.col("service"), leg.broker)
    mine = F.filter("candidates", lambda c: c["returned"] == F.lit(leg.returned))
    stepped = F.transform(mine, lambda c: c.withField("step", intervals.step_of(c, message)))
    reply = locating.is_reply(leg.is_from_network, F.col("is_initiator"), leg.broker, F.col("own_brokers"))
    scope = F.when(leg.is_from_network, MSDB).otherwise(leg.sender)
    enabled = ~F.array_contains("disabled", scope)
    searched = keys.withColumns(
        {
            f"{leg.name}_stepped": stepped,
            f"{leg.name}_is_reply": reply,
            f"{leg.name}_is_enabled": reply | enabled,
        }
    )
    # Routes that match in no step have a null one.
    steps = F.array_compact(leg.column("stepped")["step"])
    searches = ~leg.column("is_reply") & leg.column("is_enabled")
    without = matching.step_without_route(leg.broker.isNotNull(), F.size("holders") > 0)
    step = F.when(leg.column("is_reply"), F.lit(int(MatchingStep.REPLY))).when(
        searches, F.coalesce(matching.first_step(steps), without)
    )
    judged = searched.withColumns(
        {f"{leg.name}_step": step, f"{leg.name}_asks": searches & matching.asks(steps) & leg.takes_place}
    )
    in_step = F.filter(leg.column("stepped"), lambda c: c["step"] == leg.column("step"))
    return judged.withColumn(f"{leg.name}_in_step", in_step).drop(f"{leg.name}_stepped")


def _picked(matched: DataFrame, leg: _Leg) -> DataFrame:
    """One row for each broker id that step 3 may pick (the leg's pick), one with null for every other step."""
    is_balanced = (leg.column("step") == int(MatchingStep.BALANCED)) & leg.takes_place
    picks = matching.picks(F.coalesce(is_balanced, F.lit(False)), leg.column("in_step")["broker"])
    pick = leg.column("pick")
    of_pick = F.filter(leg.column("in_step"), lambda c: pick.isNull() | (c["broker"] == pick))
    return (
        matched.withColumn(f"{leg.name}_pick", F.explode(picks))
        .withColumn(f"{leg.name}_matches", of_pick)
        .withColumn(f"{leg.name}_matches", choosing.distinct_routes(leg.column("matches")))
        .drop(f"{leg.name}_in_step")
    )


def _chosen(picked: DataFrame, leg: _Leg) -> DataFrame:
    """Adds the leg's destination, tier and what `choosing.choose` makes of the matches."""
    known = F.coalesce(leg.column("pick"), leg.broker)
    sender = F.when(~leg.is_from_network, leg.sender)
    found = locating.locate(sender, known, F.col("holders"), F.col("own_brokers"))
    located = picked.withColumns(
        {f"{leg.name}_destination": found.destination, f"{leg.name}_not_located": found.reason}
    )
    matches, destination = leg.column("matches"), leg.column("destination")
    tier = choosing.usable_tier(matches, destination.isNotNull(), F.col("has_name_address"))
    tiered = located.withColumn(f"{leg.name}_tier", tier).withColumn(
        f"{leg.name}_routes", choosing.routes_of(leg.column("tier"), matches)
    )
    chosen = choosing.choose(
        leg.column("routes"),
        leg.column("tier"),
        choosing.Situation(
            step=leg.column("step"),
            destination=destination,
            not_located=leg.column("not_located"),
            name_address=F.col("name_address"),
            is_name_own=F.col("is_name_own"),
            own_addresses=F.col("own_addresses"),
            is_from_network=leg.is_from_network,
            is_forwarding=F.col("is_forwarding"),
            is_scope_enabled=leg.column("is_enabled"),
        ),
    )
    return tiered.withColumns({f"{leg.name}_{name}": column for name, column in vars(chosen).items()})


def _choice(leg: _Leg, before: _Leg | None = None) -> Column:
    """The fields of `CHOICE` from the columns of a leg; ``before`` is the leg whose address led here."""
    nothing = F.lit(None).cast("string")
    values = {
        "matching_step": F.when(leg.column("is_enabled"), leg.column("step")),
        "broker_instance": leg.column("pick")
        if before is None
        else F.coalesce(leg.column("pick"), before.column("pick")),
        "destination_database": F.when(leg.column("outcome") == str(Outcome.DELIVERED), leg.column("destination")),
        "rerouted_from": nothing if before is None else before.column("route_name"),
        "asks": leg.column("asks") if before is None else before.column("asks"),
        "asks_msdb": F.lit(False) if before is None else leg.column("asks"),
    }
    return F.struct(*(values.get(name, leg.column(name)).alias(name) for name in CHOICE))


def _leg_trace(leg: _Leg, takes_place: Column) -> Column:
    """The fields of `LEG_TRACE` from the columns of a leg, all null where it does not take place."""
    return F.struct(*(F.when(takes_place, leg.column(name)).alias(name) for name in LEG_TRACE))
