"""Exports of catalog views: read into typed rows, and brought to the rows of the tables."""

from routing.importing.catalog.covering import cover
from routing.importing.catalog.queries import queries
from routing.importing.catalog.row_values import TimeFormats
from routing.importing.catalog.typed_rows import CatalogExport, StandIns, read_export
from routing.importing.catalog.views import VIEWS

__all__ = ["VIEWS", "CatalogExport", "StandIns", "TimeFormats", "cover", "queries", "read_export"]
