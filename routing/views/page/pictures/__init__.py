"""Pictures of a report, for the page and for notebooks. Using a name imports Altair."""

from importlib import import_module
from typing import Any

_MODULES = {
    "balance": "bar_pictures",
    "before_and_after": "bar_pictures",
    "delays_by_service": "over_time",
    "estate_of": "estate_picture",
    "followed": "path_picture",
    "for_notebook": "picture_theme",
    "most_stuck": "bar_pictures",
    "outcomes_by_instance": "bar_pictures",
    "outcomes_over_time": "over_time",
    "reasons_of_trouble": "bar_pictures",
}
__all__ = tuple(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
