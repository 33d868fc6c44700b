"""Pictures of a report, for the page and for notebooks."""

from routing.views.page.pictures.bar_pictures import (
    balance,
    before_and_after,
    most_stuck,
    outcomes_by_instance,
    reasons_of_trouble,
)
from routing.views.page.pictures.estate_picture import estate_of
from routing.views.page.pictures.over_time import delays_by_service, outcomes_over_time
from routing.views.page.pictures.path_picture import followed
from routing.views.page.pictures.picture_theme import for_notebook

__all__ = [
    "balance",
    "before_and_after",
    "delays_by_service",
    "estate_of",
    "followed",
    "for_notebook",
    "most_stuck",
    "outcomes_by_instance",
    "outcomes_over_time",
    "reasons_of_trouble",
]
