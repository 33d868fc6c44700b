"""Write a report to a file. If that fails, an existing file stays unchanged.

`check_packages` reports missing packages before the page is made.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path

from routing.arguments import checked
from routing.errors import EnvironmentFault, OutputError
from routing.process import no_search_for_cycles
from routing.storage_faults import find_fault_of_folder
from routing.views.page.facts import Report

_PACKAGES = {"altair": "altair", "jinja2": "jinja2", "vl_convert": "vl-convert-python"}


def check_packages() -> None:
    """Raise EnvironmentFault if a package of the extra ``report`` is missing."""
    for module, package in _PACKAGES.items():
        if find_spec(module) is None:
            raise EnvironmentFault.no_package(package, "report")


def check_place(file: str) -> Path:
    """Return the file that a page is to be written to.

    Raises OutputError if it cannot be written, before any work is done.
    """
    place = Path(file)
    try:
        why = "it is not a file name" if "\0" in file or not place.name else _why_not(place)
    # The name is too long, or the folder cannot be read.
    except OSError as error:
        raise OutputError.no_page(file, error.strerror or str(error)) from error
    if why is not None:
        raise OutputError.no_page(file, why)
    return place


def _why_not(place: Path) -> str | None:
    folder = place.parent
    if not folder.is_dir():
        return "there is no such folder"
    if place.is_dir():
        return "it is a folder"
    # Writing a page would replace a device.
    if place.exists() and not place.is_file():
        return "it is not a regular file"
    return find_fault_of_folder(folder)


@checked
def write_page(
    report: Report, file: str, *, replacing: Callable[[], AbstractContextManager[None]] = nullcontext
) -> None:
    """Write a report as one HTML file that loads nothing from elsewhere.

    Args:
        report: the report.
        file: the path of the page, which replaces an older one.
        replacing: the block within which the file takes its place.

    Raises:
        OutputError: the file cannot be written.
        EnvironmentFault: a package that draws the pictures is not installed.

    Example:
        >>> import pathlib
        >>> routing.write_page(routing.report(routing.load_config("job.yaml")), "report.html")
        >>> pathlib.Path("report.html").read_text(encoding="utf-8")[:15]
        '<!doctype html>'
    """
    check_packages()
    place = check_place(file)
    from routing.views.page.report_page import render

    with no_search_for_cycles():
        text = render(report)
    try:
        with replacing():
            _write_whole(place, text)
    except OSError as error:
        raise OutputError.no_page(file, error.strerror or str(error)) from error


def _write_whole(place: Path, text: str) -> None:
    """Write a temporary file, then replace the page with it: nobody ever sees half a page."""
    # The target of a link is written, not the link.
    target = place.resolve()
    temporary_file = target.with_name(f".sbroute-{uuid.uuid4().hex}.html")
    try:
        with temporary_file.open("x", encoding="utf-8", newline="\n") as stream:
            stream.writelines([text])
            stream.flush()
            os.fsync(stream.fileno())
        temporary_file.replace(target)
    except BaseException:
        temporary_file.unlink(missing_ok=True)
        raise
