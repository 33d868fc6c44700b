"""Pictures of a report, for the page and for notebooks."""

from routing.analysis.report.pictures.by_lane import most_stuck, outcomes_by_instance, reasons_of_trouble
from routing.analysis.report.pictures.drawn import estate_of
from routing.analysis.report.pictures.followed import followed
from routing.analysis.report.pictures.notebook import for_notebook
from routing.analysis.report.pictures.over_time import delays_by_service, outcomes_over_time
from routing.analysis.report.pictures.sharing import balance
from routing.analysis.report.pictures.what_if import before_and_after

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
