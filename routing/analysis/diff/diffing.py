"""Compare what becomes of messages on two sides: another configuration, older versions, a time, or a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from routing.analysis.diff import opening, sides
from routing.analysis.diff.asked import Against, Scripts
from routing.analysis.diff.comparing import Changed, count_changes, is_worse, list_keys
from routing.analysis.diff.finding_changes import find_finding_changes
from routing.analysis.diff.route_changes import find_route_changes
from routing.analysis.diff.sides import Side, Sides
from routing.analysis.lint.options import LintSettings
from routing.analysis.lint.options import settings as lint_settings
from routing.analysis.lint.reading import read_traffic
from routing.config import Config
from routing.sessions import session
from routing.storage.columns import Columns, Table, check_given, is_frame
from routing.storage.opening import Opener
from routing.storage.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.importing.result import Imported


@dataclass(frozen=True)
class Diff:
    """What `diff` returns; all rows are in the order in which they are printed.

    before, after: what is compared, with the time of its decisions. compared: how many messages there are. counts:
    rows of `schemas.CHANGE_COUNTS`, those that get worse first; keys: of `schemas.KEY_CHANGES`; routes: of
    `schemas.ROUTE_CHANGES`; findings: of `schemas.FINDING_CHANGES`. messages: every changed message in the
    columns of `schemas.MESSAGE_CHANGES`, an Arrow table or a DataFrame; None where they were not asked for.
    script: what an import of the scripts would tell; None where none were given.
    """

    before: Side
    after: Side
    compared: int
    counts: Rows
    keys: Rows
    routes: Rows
    findings: Rows
    messages: Table | None
    script: Imported | None

    @property
    def changed(self) -> int:
        """How many messages change."""
        return sum(row["messages"] for row in self.counts)

    @property
    def worse(self) -> int:
        """How many messages get worse."""
        return sum(row["messages"] for row in self.counts if is_worse(row))


def diff(
    tables: Mapping[str, Table] | Config,
    against: Against,
    *,
    at: datetime | None = None,
    with_messages: bool = False,
    lint: LintSettings | None = None,
    opener: Opener | None = None,
    spark: SparkSession | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Diff:
    """Tell which messages are decided otherwise, which routes differ, and which findings of lint come and go.

    ``tables`` are a configuration, or tables by its keys (tables.md): DataFrames, Arrow tables or datasets. What
    they are compared with: another configuration, or tables that replace some of these; `Versions`, which are the
    side before; a time, as of which the same tables are decided; or `Scripts`, in force from the decision on.
    Messages and dialogs are always those of ``tables``. Both sides are decided as of ``at`` (UTC where it has no
    zone; the clock if not given). ``with_messages`` keeps every changed message. ``lint`` says which findings
    count; a configuration brings its own. A configuration's tables are opened by ``opener``, or as `Opener` does
    it, with ``spark`` where a session is needed. Raises ContractError, and names the side whose tables are wrong.
    """
    moment = datetime.now(timezone.utc) if at is None else at
    scripts = against.read(moment) if isinstance(against, Scripts) else []
    shelf = opening.Shelf(opener or _opener(tables, spark))
    progress("reading the settings")
    both = sides.read(*opening.give_sides(tables, against, moment, shelf))
    before, after = both.both
    traffic = _traffic(tables, shelf)
    dialogs = _telling(traffic.get("dialogs"), both)
    sides.refuse(before, {**before.settings, **({} if dialogs[0] is None else {"dialogs": dialogs[0]})})
    done = None
    if isinstance(against, Scripts):
        from routing.analysis.diff.scripted import apply_scripts

        after, done = apply_scripts(before, scripts, against.instance, after.label)
        both = Sides(before, after)
    sides.refuse(after, after.differs_in(before))
    progress("comparing messages")
    changed = _compare(traffic, both, with_messages)
    progress("comparing routes and findings")
    return Diff(
        before,
        after,
        changed.compared,
        count_changes(changed),
        list_keys(changed),
        find_route_changes(both),
        find_finding_changes(both, dialogs, lint or _lint(tables)),
        changed.messages,
        done,
    )


def _opener(tables: Mapping[str, Table] | Config, spark: SparkSession | None) -> Opener:
    if spark is not None:
        return Opener.of_session(spark)
    settings = tables.spark if isinstance(tables, Config) else {}
    return Opener(lambda: session.start(settings), settings)


def _lint(tables: Mapping[str, Table] | Config) -> LintSettings:
    return lint_settings(tables.lint, tables.file) if isinstance(tables, Config) else LintSettings()


def _traffic(tables: Mapping[str, Table] | Config, shelf: opening.Shelf) -> dict[str, Table]:
    if isinstance(tables, Config):
        return shelf.traffic(tables)
    check_given(tables, opening.TRAFFIC)
    return {key: tables[key] for key in opening.TRAFFIC if key in tables}


def _telling(dialogs: Table | None, both: Sides) -> Sequence[Columns | None]:
    """For each side the rows of dialogs that can be at fault, or tell a finding at its time."""
    if dialogs is None:
        return None, None
    first = read_traffic(dialogs, "dialogs", both.before.at)
    return first, first if both.is_one_time else read_traffic(dialogs, "dialogs", both.after.at)


def _compare(traffic: Mapping[str, Table], both: Sides, with_messages: bool) -> Changed:
    """The messages compared, where they are."""
    messages, dialogs = traffic["messages"], traffic.get("dialogs")
    if is_frame(messages):
        from routing.analysis.diff import by_spark

        return by_spark.find_changed(messages, dialogs, both, with_messages=with_messages)
    from routing.analysis.diff import by_arrow

    return by_arrow.find_changed(messages, dialogs, both, with_messages=with_messages)
