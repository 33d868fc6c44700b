"""A report to a file: the page is written whole, or what stood there stays as it was.

Nothing here needs the packages of the page before it is made: `check_packages` tells which of them is missing.
"""

from __future__ import annotations

import os
import uuid
from importlib.util import find_spec
from pathlib import Path

from routing.analysis.report.facts import Report
from routing.errors import EnvironmentFault, OutputError
from routing.process.garbage import no_search_for_cycles

_PACKAGES = {"altair": "altair", "jinja2": "jinja2", "mpmath": "mpmath", "vl_convert": "vl-convert-python"}


def check_packages() -> None:
    """Raise EnvironmentFault where a package of the extra ``report`` is missing."""
    for module, package in _PACKAGES.items():
        if find_spec(module) is None:
            raise EnvironmentFault.no_package(package, "report")


def check_place(file: str) -> Path:
    """The file that a page is to be written to. Raises OutputError where it cannot be, before any work is done."""
    place = Path(file)
    folder = place.parent
    if "\0" in file or not place.name:
        raise OutputError.no_page(file, "it is no name of a file")
    if not folder.is_dir():
        raise OutputError.no_page(file, "there is no such folder")
    if place.is_dir():
        raise OutputError.no_page(file, "it is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError.no_page(file, "its folder cannot be written to")
    return place


def write_page(report: Report, file: str) -> None:
    """Write the page of a report. Raises OutputError, and EnvironmentFault as `check_packages` does."""
    check_packages()
    place = check_place(file)
    from routing.analysis.report.page import render

    with no_search_for_cycles():
        text = render(report)
    try:
        _write_whole(place, text)
    except OSError as error:
        raise OutputError.no_page(file, error.strerror or str(error)) from error


def _write_whole(place: Path, text: str) -> None:
    """Write beside the file, then take its place: nobody ever sees half a page."""
    # Where a link stands, what it leads to is written.
    target = place.resolve()
    beside = target.with_name(f".sbroute-{uuid.uuid4().hex}.html")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as stream:
            stream.writelines([text])
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
