"""``--time-zone``: the zone of a clock, and the moment that a time on it was."""

from __future__ import annotations

import difflib
import re
from datetime import datetime, timedelta, timezone, tzinfo

from routing.errors import InputError, quote
from routing.render.wording import format_time

_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")
_UTC_NAMES = ("utc", "z")
_MINUTES = 60
_LONGEST_OFFSET = 14 * _MINUTES


def time_zone(text: str) -> tzinfo:
    """Return the zone that ``--time-zone`` names: an offset, or a name of the IANA database. Raises InputError."""
    if text.lower() in _UTC_NAMES:
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    if match is not None:
        sign, hours, minutes = match.groups()
        offset = int(hours) * _MINUTES + int(minutes)
        if int(minutes) >= _MINUTES or offset > _LONGEST_OFFSET:
            raise InputError(f"--time-zone {quote(text)} is not an offset", "from -14:00 to +14:00")
        return timezone(timedelta(minutes=-offset if sign == "-" else offset))
    return _named_zone(text)


def _named_zone(text: str) -> tzinfo:
    import zoneinfo

    zone_names = zoneinfo.available_timezones()
    if text in zone_names:
        return zoneinfo.ZoneInfo(text)
    if not zone_names:
        hint = "this machine has no time zones: pip install tzdata, or give an offset such as +02:00"
        raise InputError(f"--time-zone {quote(text)} cannot be found", hint)
    folded = {name.lower(): name for name in zone_names}
    nearest = difflib.get_close_matches(text.lower()[:100], sorted(folded), n=1, cutoff=0.5)
    also = f", did you mean {folded[nearest[0]]}?" if nearest else ""
    hint = "name one as Europe/Berlin, or give an offset such as +02:00"
    raise InputError(f"--time-zone {quote(text)} is not a time zone{also}", hint)


def moment_of(local: datetime, zone: tzinfo) -> tuple[datetime, bool]:
    """Convert a time without zone to UTC, and tell whether the clock showed it twice: the earlier one is taken.

    Raises ValueError where the clock never showed it, or the moment is beyond the years 1 to 9999.
    """
    earlier, later = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    try:
        moments = [time.astimezone(timezone.utc) for time in (earlier, later)]
    except (ValueError, OverflowError):
        raise ValueError(f"{local} is not a time between the years 1 and 9999") from None
    if moments[0] == moments[1]:
        return moments[0], False
    if moments[0].astimezone(zone).replace(tzinfo=None) != local:
        raise ValueError(f"no clock in {zone} showed {local}: it was put forward there")
    return moments[0], True


def twofold(what: str, local: datetime, moment: datetime) -> str:
    """Return the sentence on a time that a clock showed twice."""
    earlier = format_time(moment.replace(microsecond=0))
    return f"{what}: the clock showed {local} twice, and the earlier is taken, {earlier}"
