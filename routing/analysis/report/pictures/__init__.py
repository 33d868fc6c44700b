"""Pictures of a report, for the page and for notebooks."""

from routing.analysis.report.pictures.by_lane import most_stuck, outcomes_by_instance, reasons_of_trouble
from routing.analysis.report.pictures.notebook import for_notebook
from routing.analysis.report.pictures.over_time import delays_by_service, outcomes_over_time
from routing.analysis.report.pictures.sharing import balance

__all__ = [
    "balance",
    "delays_by_service",
    "for_notebook",
    "most_stuck",
    "outcomes_by_instance",
    "outcomes_over_time",
    "reasons_of_trouble",
]
