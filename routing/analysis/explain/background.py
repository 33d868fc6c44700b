"""What is told beside the rules' path: how much is known of the instance, as of when, and what SQL Server said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from routing.analysis.explain.known import Row
from routing.analysis.explain.lines import Line, line
from routing.rules import observed, text
from routing.rules.observed import Agreement, Compared
from routing.storage.columns import Columns, instances_of
from routing.storage.imported import newest_after, newest_of
from routing.storage.times import with_moments
from routing.terms import TRANSMISSION_QUEUE, Reason

_UNKNOWN_TEXT = Compared(Agreement.SAYS_NOTHING, "A text that this project does not know.")


@dataclass(frozen=True)
class Status:
    """A transmission_status: when it was seen (microseconds), SQL Server's number, and the text; None if blank."""

    observed_at: int
    number: int | None
    text: str | None

    def compared(self, reason: Reason, *, in_msdb: bool) -> Compared:
        """What it says of a verdict's reason; ``in_msdb`` where the routes of msdb were searched last."""
        if self.number is None and self.text is not None:
            return _UNKNOWN_TEXT
        return observed.compare(reason, self.number, in_msdb=in_msdb)


@dataclass(frozen=True)
class Background:
    """``instance_gap``: the finding of item INSTANCE, None where enough is known of the instance.

    ``status``: the newest one of the message, None where none is stored. ``newest``: when what has no history was
    last imported, by instance (`imported.newest_of`).
    """

    instance_gap: str | None = None
    status: Status | None = None
    newest: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_columns(cls, near: Mapping[str, Columns], kept: Mapping[str, Columns]) -> Background:
        """What the rows of a message's instance say, and those that import kept of both."""
        status = newest_status(kept["observed_routing"]) if "observed_routing" in kept else None
        imports = kept["imports"].dicts() if "imports" in kept else ()
        return cls(find_gap(near), status, newest_of(with_moments(imports, ["exported_at"])))

    def before_the_path(self, instance: str, t: int) -> list[Line]:
        """What a reader has to know before any verdict; ``t`` is the time of the decision."""
        later = newest_after(self.newest, instance, t)
        lines = [] if later is None else [line("IMPORT", "LATER", name=instance, at=later)]
        return lines if self.instance_gap is None else [*lines, line("INSTANCE", self.instance_gap, name=instance)]

    def after_the_verdict(self, reason: str | None, *, in_msdb: bool) -> list[Line]:
        """What SQL Server said, beside the verdict's reason."""
        if self.status is None or reason is None:
            return []
        compared = self.status.compared(Reason(reason), in_msdb=in_msdb)
        return [
            line(
                "STATUS",
                str(compared.agreement),
                at=self.status.observed_at,
                error_number=self.status.number,
                status_text=self.status.text,
                why=compared.why,
            )
        ]


NOTHING = Background()
"""Nothing to tell besides."""


def find_gap(near: Mapping[str, Columns]) -> str | None:
    """Whether of an instance only the name is known (ONLY_NAME), or only that and routes (ONLY_ROUTES).

    ``near`` has the rows of this one instance.
    """
    listed = instances_of({key: near[key] for key in ("instances", "databases")}).values()
    if not any(instance.is_only_named for instance in listed):
        return None
    return "ONLY_ROUTES" if len(near["routes"]) else "ONLY_NAME"


def newest_status(rows: Columns) -> Status | None:
    """The newest status among rows of observed_routing; of several at one time one with a number and a text."""
    from_queue = [
        row for row in rows.dicts() if row["source"] == TRANSMISSION_QUEUE and row["observed_at"] is not None
    ]
    if not from_queue:
        return None
    newest = max(from_queue, key=_place)
    return Status(newest["observed_at"], newest["error_number"], text.empty_as_null(newest["status_text"]))


def _place(row: Row) -> tuple[int, int, str]:
    number = row["error_number"]
    return row["observed_at"], -1 if number is None else number, row["status_text"] or ""
