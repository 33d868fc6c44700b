"""Exports of catalog views: read into typed rows, and brought to the rows of the tables."""

from routing.importing.catalog.covering import cover
from routing.importing.catalog.queries import queries
from routing.importing.catalog.reading import Export, StandIns, read_export
from routing.importing.catalog.rows import Times
from routing.importing.catalog.views import VIEWS

__all__ = ["VIEWS", "Export", "StandIns", "Times", "cover", "queries", "read_export"]
