"""Read exports of catalog views into typed rows, and these into the rows of the tables."""

from routing.importing.catalog.covering import cover
from routing.importing.catalog.query_script import queries
from routing.importing.catalog.typed_rows import CatalogExport, StandIns, TimeFormats, read_export
from routing.importing.catalog.views import VIEWS

__all__ = ["VIEWS", "CatalogExport", "StandIns", "TimeFormats", "cover", "queries", "read_export"]
