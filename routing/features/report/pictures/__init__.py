"""Pictures of a report, for the page and for notebooks."""

from routing.features.report.pictures.by_lane import most_stuck, outcomes_by_instance, reasons_of_trouble
from routing.features.report.pictures.drawn_picture import estate_of
from routing.features.report.pictures.notebook import for_notebook
from routing.features.report.pictures.over_time import delays_by_service, outcomes_over_time
from routing.features.report.pictures.path_picture import followed
from routing.features.report.pictures.sharing import balance
from routing.features.report.pictures.what_if import before_and_after

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
