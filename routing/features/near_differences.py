"""Name the difference between a route or service and what a message asks for, and tell how near two names are."""

from __future__ import annotations

from routing.terms import BLANKS

CASE, AROUND, SLASH = "NAME_CASE", "NAME_BLANKS", "NAME_SLASH"
SPELLINGS = (CASE, AROUND, SLASH)
OTHER_SERVICE, OTHER_BROKER, NO_SERVICE = "OTHER_SERVICE", "OTHER_BROKER_INSTANCE", "NO_SERVICE_NAME"
EXPIRED, NOT_YET = "EXPIRED", "NOT_YET_VALID"
BROKER_OFF = "BROKER_DISABLED"
_EDGE = f"{BLANKS}/"
_NO_BLANKS = str.maketrans("", "", BLANKS)


def differences(asked: str, named: str) -> list[str]:
    """List the differences of a service name from the message's, empty where there are none.

    CASE, AROUND and SLASH for names that differ in case, blanks around or slashes after alone;
    OTHER_SERVICE alone for all others.
    """
    if likeness(asked) != likeness(named):
        return [OTHER_SERVICE]
    (before, after), (its_before, its_after) = edges(asked), edges(named)
    blanks = (before, after.replace("/", "")) != (its_before, its_after.replace("/", ""))
    slashes = [end.translate(_NO_BLANKS) for end in (after, its_after)]
    differing = {CASE: core(asked) != core(named), AROUND: blanks, SLASH: slashes[0] != slashes[1]}
    return [name for name, differs in differing.items() if differs]


def likeness(name: str) -> str:
    """Return the common form of names that differ in case, blanks around or slashes after alone."""
    return core(name).lower()


def core(name: str) -> str:
    """Return a name without the blanks around it and the blanks and slashes after."""
    return name.rstrip(_EDGE).lstrip(BLANKS)


def edges(name: str) -> tuple[str, str]:
    """Return the characters that `core` leaves out, before and after."""
    return name[: len(name) - len(name.lstrip(BLANKS))], name[len(name.rstrip(_EDGE)) :]
