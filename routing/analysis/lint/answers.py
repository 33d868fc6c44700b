"""Findings on what becomes of the questions of `probing`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import exploded, found, listed
from routing.analysis.lint.probing import ARRIVALS, ASKING, RETURNS, database_of
from routing.configuration import FROM_NETWORK
from routing.terms import ERROR_NUMBERS, MatchingStep, Outcome, Reason

_NOT_HERE = (str(Reason.SERVICE_NOT_FOUND), str(Reason.BROKER_INSTANCE_NOT_FOUND))
_NO_WAY = (str(Reason.NO_ROUTE), *_NOT_HERE, str(Reason.TRANSPORT_ADDRESS_INVALID))


def _number(reason: Column) -> Column:
    pairs = [F.when(reason == str(name), F.lit(number)) for name, number in ERROR_NUMBERS.items()]
    return F.coalesce(*pairs)


def answers(estate: Estate, verdicts: DataFrame) -> DataFrame:
    """SBR021 to SBR025, SBR033: one verdict, one row."""
    rows = verdicts.withColumn("database_name", database_of(F.col("key_database")))
    return exploded(rows, [unmatched(), not_here(), only_local(), without_local(), not_forwarded(), asked_first()])


def _routed_here() -> Column:
    return (F.col("purpose") == ARRIVALS) & F.col("by_instance").isNotNull() & ~F.col("choice.asks")


def _sender() -> Column:
    return F.concat_ws(".", "by_instance", "by_database")


def unmatched() -> Column:
    """SBR021: what others route here matches nothing in msdb."""
    return found(
        "SBR021",
        _routed_here() & (F.col("choice.reason") == str(Reason.NO_ROUTE)),
        F.col("to_service_name"),
        "route %s of %s leads here, and no route of msdb matches",
        F.col("by_name"),
        _sender(),
    )


def not_here() -> Column:
    """SBR022: what others route here is LOCAL to msdb, and no database has it."""
    reason = F.col("choice.reason")
    return found(
        "SBR022",
        _routed_here() & reason.isin(*_NOT_HERE),
        F.col("to_service_name"),
        "route %s of %s leads here, and is dropped here: %s",
        F.col("by_name"),
        _sender(),
        reason,
        number=_number(reason),
    )


def _arrives_open() -> Column:
    return (F.col("purpose") == ARRIVALS) & F.col("bound_broker").isNull()


def only_local() -> Column:
    """SBR023: what arrives for the service is delivered by a LOCAL route for any service."""
    is_any = F.col("choice.matching_step") == int(MatchingStep.ANY_SERVICE)
    delivered = F.col("choice.outcome") == str(Outcome.DELIVERED)
    return found(
        "SBR023",
        _arrives_open() & is_any & delivered,
        F.col("to_service_name"),
        "what arrives for it matches only route %s",
        F.col("choice.route_name"),
    )


def without_local() -> Column:
    """SBR024: nothing matches what arrives for the service, and no route that is known leads here."""
    nobody_leads = F.col("by_instance").isNull()
    return found(
        "SBR024",
        _arrives_open() & nobody_leads & (F.col("choice.reason") == str(Reason.NO_ROUTE)),
        F.col("to_service_name"),
        "what arrives for it matches no route of msdb",
    )


def not_forwarded() -> Column:
    """SBR025: the route of msdb leads on, and the instance does not forward."""
    arrives = F.col("key_database") == FROM_NETWORK
    return found(
        "SBR025",
        arrives & (F.col("choice.reason") == str(Reason.FORWARDING_DISABLED)),
        F.col("choice.route_name"),
        "what arrives for it is dropped: forwarding is off",
    )


def asked_first() -> Column:
    """SBR033: step 4 comes before a LOCAL route for any service."""
    return found(
        "SBR033",
        (F.col("purpose") == ASKING) & F.col("choice.asks"),
        F.col("to_service_name"),
        "an open message for it opens a route request, though the service is in this instance",
    )


def no_return(estate: Estate, verdicts: DataFrame) -> DataFrame:
    """SBR020: no service of a database that sends here can be answered.

    Which service opens a dialog is not in the tables, so that one way back is enough.
    """
    choice = F.col("choice")
    lost = choice["reason"].isin(*_NO_WAY) & ~choice["asks"]
    pairs = (
        verdicts.where(F.col("purpose") == RETURNS)
        .groupBy("instance_name", F.col("key_database").alias("database_name"), "by_instance", "by_database")
        .agg(
            F.bool_and(lost).alias("is_lost"),
            F.collect_set("to_service_name").alias("services"),
            F.min(choice["reason"]).alias("reason"),
        )
    )
    return exploded(
        pairs,
        [
            found(
                "SBR020",
                F.col("is_lost"),
                F.array_min("services"),
                "%s sends here, and no route leads back to %s: %s",
                _sender(),
                listed(F.col("services")),
                F.col("reason"),
                number=_number(F.col("reason")),
            )
        ],
    )
