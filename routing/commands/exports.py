"""The options that say of exports what their files do not: whose rows they are, of what time, in whose form."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from routing.commands.common import Console, moment
from routing.errors import InputError, quote

if TYPE_CHECKING:
    from routing.importing.catalog import StandIns, TimeFormats


def add_options(command: argparse.ArgumentParser | argparse._ArgumentGroup, *, has_defaults: bool) -> None:
    """Declare the options; ``has_defaults`` where a file's place and time stand in for the first three."""
    of_folder, of_file = (" (default: from its folder)", ", default: the file's") if has_defaults else ("", "")
    command.add_argument(
        "--instance", metavar="NAME", help=f"the instance of rows without a column instance_name{of_folder}"
    )
    command.add_argument(
        "--database", metavar="NAME", help=f"the database of rows without a column database_name{of_folder}"
    )
    command.add_argument(
        "--exported-at", metavar="TIME", help=f"the time of rows without a column exported_at (ISO 8601{of_file})"
    )
    command.add_argument(
        "--date-format",
        metavar="FORMAT",
        help="how times are written, apart from ISO 8601, such as 'dd.MM.yyyy HH:mm:ss'",
    )
    command.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="the zone of exported_at where it names none, such as Europe/Berlin or +02:00 (UTC)",
    )
    command.add_argument(
        "--address",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="a network address of the instance, tcp://HOST:PORT (repeatable)",
    )


def addresses(options: argparse.Namespace) -> Sequence[str]:
    """Return the addresses of ``--address``. Raises InputError for one that is none."""
    from routing.importing.catalog.endpoints import is_tcp

    named_addresses: list[str] = options.address
    for address in named_addresses:
        if not is_tcp(address):
            raise InputError(f"--address {quote(address)} is not tcp://HOST[:PORT]")
    return named_addresses


def times(options: argparse.Namespace) -> TimeFormats:
    """Read the formats of times from the options. Raises InputError."""
    from routing.importing.catalog import TimeFormats
    from routing.importing.catalog.clock_zones import time_zone
    from routing.importing.catalog.date_formats import date_format

    form = None if options.date_format is None else date_format(options.date_format)
    return TimeFormats(form, None if options.time_zone is None else time_zone(options.time_zone))


def stand_ins(options: argparse.Namespace, times: TimeFormats, console: Console) -> StandIns:
    """Read the options' values for columns that an export lacks. Raises ContractError."""
    from routing.importing.catalog import StandIns

    at = moment_on_clock(options.exported_at, "--exported-at", times.zone, console)
    return StandIns(options.instance, options.database, at)


def moment_on_clock(text: str | None, option: str, zone: tzinfo | None, console: Console) -> datetime | None:
    """Return the time of an option, on the clock of ``--time-zone`` where it names no zone itself.

    Raises ContractError.
    """
    if text is None:
        return None
    from routing.config.config_values import names_zone
    from routing.importing.catalog.clock_zones import moment_of, twofold

    at = moment(text, option)
    if names_zone(text):
        return at
    if zone is None:
        console.note(f"{option} {quote(text)} names no zone and is taken as UTC (--time-zone)")
        return at
    local = at.replace(tzinfo=None)
    try:
        at, is_twofold = moment_of(local, zone)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error
    if is_twofold:
        console.note(twofold(option, local, at), "warning")
    return at
