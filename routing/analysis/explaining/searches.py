"""The two searches that a message may make of a routing table, read off the trace of its choice."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import text
from routing.choosing import Tier
from routing.terms import LOCAL_ADDRESS, MSDB, MatchingStep

_ROUTELESS = (MatchingStep.REPLY, MatchingStep.SERVICE_OF_THIS_INSTANCE)


@dataclass(frozen=True)
class Search:
    """One search of a routing table: the Columns of a leg, and which of its parts are told.

    takes_place: the message gets there. is_told: its tiers and what follows do not hang on a dialog that is
    not given.
    """

    number: int
    leg: Column
    from_network: Column
    scope: Column
    broker: Column
    opens: Column
    takes_place: Column
    undecided: Column

    @property
    def searches(self) -> Column:
        """Whether routes are looked at."""
        return self.takes_place & ~self.leg["is_reply"] & self.leg["is_enabled"]

    @property
    def stop(self) -> Column:
        """The step that ended the search."""
        return F.when(self.opens, int(MatchingStep.ROUTE_REQUEST)).otherwise(self.leg["step"])

    @property
    def is_told(self) -> Column:
        """Whether tiers and what follows them are the same for every dialog, or the dialog is known."""
        return self.takes_place & self.leg["is_enabled"] & ~self.opens & ~self.undecided

    @property
    def known(self) -> Column:
        """The broker id after matching, null while open."""
        return F.coalesce(self.leg["pick"], self.broker)

    @property
    def address(self) -> Column:
        """The address that was chosen, read from the service name where the plan leaves that to the message."""
        in_name = text.address_in_name(F.col("to_service_name"))
        return F.when(self.leg["reads_address"], in_name).otherwise(self.leg["address"])

    @property
    def locates(self) -> Column:
        """Whether section 4 was asked: a reply, step 6, or a LOCAL route where no mirrored one came first."""
        local = F.exists(self.leg["matches"], lambda route: route["kind"] == LOCAL_ADDRESS)
        mirrored = F.coalesce(self.leg["tier"] == Tier.MIRROR.value, F.lit(False))
        asked = self.leg["step"].isin(*(int(step) for step in _ROUTELESS)) | (local & ~mirrored)
        return self.is_told & F.coalesce(asked, F.lit(False))


def searches() -> tuple[Search, Search]:
    """The first search and the second; Columns over `judging.Judged.traced`."""
    trace = F.col("choice.trace")
    first, again = trace["first"], trace["again"]
    balanced = int(MatchingStep.BALANCED)
    goes_on = ~F.col("is_expired") & ~F.col("opens")
    hangs_on_dialog = F.col("undecided") & F.coalesce(first["step"] == balanced, F.lit(False))
    return (
        Search(
            number=1,
            leg=first,
            from_network=F.col("database_name").isNull(),
            scope=F.coalesce("database_name", F.lit(MSDB)),
            broker=F.col("bound_broker"),
            opens=F.col("opens"),
            takes_place=~F.col("is_expired"),
            undecided=hangs_on_dialog,
        ),
        Search(
            number=2,
            leg=again,
            from_network=F.lit(True),
            scope=F.lit(MSDB),
            broker=F.coalesce(first["pick"], F.col("bound_broker")),
            opens=F.col("opens_in_msdb"),
            takes_place=goes_on & again["outcome"].isNotNull() & ~hangs_on_dialog,
            undecided=F.col("undecided") & F.coalesce(again["step"] == balanced, F.lit(False)),
        ),
    )


def complete(traced: DataFrame) -> DataFrame:
    """The traced messages with what a dialog says of them, null where no dialogs are given."""
    missing = {
        name: F.lit(None).cast(kind)
        for name, kind in (
            ("dialog_lifetime", "timestamp"),
            ("acknowledged_broker", "string"),
            ("acknowledged_at", "timestamp"),
            ("far_broker", "string"),
        )
        if name not in traced.columns
    }
    return traced.withColumns(missing) if missing else traced
