"""Inputs that have no versions may change while a run reads them: what it says then, whatever fails by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from routing.delta.spark_tables import AsItIs, Input
from routing.errors import ContractError, RoutingError, StorageError, first_sentence, quote

# Several passes read these; what is small is read once.
_READ_AGAIN = ("messages", "dialogs")


@contextmanager
def telling_what_may_change(inputs: Mapping[str, Input]) -> Iterator[None]:
    """Add to what fails within that an input may have changed between two passes, where one has no versions.

    A pass that meets a message which the first one did not see fails (`messages.results`), and so do counts that
    do not add up. Raises StorageError where it was no error of this package.
    """
    loose = {key: inputs[key].location for key in _READ_AGAIN if isinstance(inputs.get(key), AsItIs)}
    if not loose:
        yield
        return
    try:
        yield
    except ContractError:
        raise
    except RoutingError as error:
        raise error.with_hint(_hint(loose)) from error
    except Exception as error:
        doing = " and ".join(f"reading tables.{key}" for key in loose)
        raise StorageError.failed(doing, first_sentence(error)).with_hint(_hint(loose)) from error


def _hint(loose: Mapping[str, object]) -> str:
    named = ", ".join(f"tables.{key} at {quote(location)}" for key, location in loose.items())
    why = "read at no version, and perhaps changed while the run was at work"
    return f"{why}: {named}; copy these to Delta tables"
