"""Pictures of a report, for the page and for notebooks."""

from routing.features.report.pictures.bar_pictures import (
    balance,
    before_and_after,
    most_stuck,
    outcomes_by_instance,
    reasons_of_trouble,
)
from routing.features.report.pictures.estate_picture import estate_of
from routing.features.report.pictures.over_time import delays_by_service, outcomes_over_time
from routing.features.report.pictures.path_picture import followed
from routing.features.report.pictures.picture_theme import for_notebook

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
