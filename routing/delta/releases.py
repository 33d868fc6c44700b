"""The installed release of this package, and which one wrote a table: what a newer one wrote is left alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from routing.errors import OutputError
from routing.tables.table_columns import Table, as_dataset, is_frame

_FORM = re.compile(
    r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,5})(?:[._-]?(dev|a|alpha|b|beta|c|rc|pre|preview|snapshot)[0-9]{0,9})*"
)
_AFTER = re.compile(r"(?:(?:[._-]?(?:post|rev|r)|-)[0-9]{0,9})?(?:\+[a-z0-9._-]*)?")


def release() -> str:
    """Return the release, such as ``0.1.0``; ``unknown`` where the package runs uninstalled (from a zip, say)."""
    try:
        return version("service-broker-routing")
    except PackageNotFoundError:
        return "unknown"


def check_release(runs: Table, location: str) -> None:
    """Refuse tables that a newer release wrote: each run says in ``runs`` which one it was.

    ``runs`` is that table as it stands, of which the column ``release`` is read; ``location`` is for the
    message. Raises OutputError.
    """
    if is_frame(runs):
        if "release" in runs.columns:
            refuse_newer((str(row["release"]) for row in runs.select("release").distinct().collect()), location)
    elif "release" in runs.schema.names:
        releases = as_dataset(runs).to_table(columns=["release"])["release"].unique()
        refuse_newer((str(release) for release in releases.to_pylist()), location)


def refuse_newer(releases: Iterable[str], location: str) -> None:
    """Raise OutputError where one of some releases is newer than this one."""
    newest = newer_than(release(), releases)
    if newest is not None:
        raise OutputError.newer_release(location, newest, release())


def newer_than(own_release: str, others: Iterable[str]) -> str | None:
    """Return the newest of the releases, where it is newer than one's own; one of no known form is passed over."""
    mine = parts(own_release)
    numbered = [(number, text) for text in others if (number := parts(text)) is not None]
    if mine is None or not numbered:
        return None
    number, text = max(numbered)
    return text if number > mine else None


def parts(text: str) -> tuple[tuple[int, ...], bool] | None:
    """Split a release into its numbers, and whether it is final (a release candidate, say, is not).

    ``1.10`` is newer than ``1.9``, ``1.0`` than ``1.0rc1``; ``1.0.0`` and ``1.0.post1`` are ``1``. None where
    the text is no release (``unknown``, of a package that runs uninstalled).
    """
    folded = text.strip().lower()
    match = _FORM.match(folded)
    if match is None or _AFTER.fullmatch(folded, match.end()) is None:
        return None
    numbers = [int(number) for number in match.group(1).split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), match.group(2) is None
