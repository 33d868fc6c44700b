"""What Spark's refusal says of a table: that there is none, or that it cannot be read at a version.

Told apart by the error's condition alone. What no list has is neither: a missing permission, a network that fails.
"""

from __future__ import annotations

from collections.abc import Iterable

from routing.config import TableLocation
from routing.errors import condition

_ABSENT = (
    *("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "NO_SUCH_CATALOG_EXCEPTION"),
    # Of a name whose first part is no catalog.
    "REQUIRES_SINGLE_PART_NAMESPACE",
    *("PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND", "DELTA_FILE_OR_DIR_NOT_FOUND"),
)
# A name stands for a table of another format then, or for one that has lost its files; at a path there is none.
_NOT_DELTA = ("DELTA_ONLY_OPERATION", "DELTA_TABLE_ONLY_OPERATION", "DELTA_MISSING_DELTA_TABLE")
_WITHOUT_VERSIONS = (
    # Views, to DESCRIBE HISTORY: of Spark 4, of Spark 3.5, of Delta.
    *("EXPECT_TABLE_NOT_VIEW", "_LEGACY_ERROR_TEMP_1013"),
    *("DELTA_CANNOT_DESCRIBE_VIEW_HISTORY", "DELTA_OPERATION_ON_VIEW_NOT_ALLOWED"),
    # What is refused to a read at a version: of views and other formats, and of tables with row filters or masks.
    *("UNSUPPORTED_FEATURE.TIME_TRAVEL", "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
    *("FGAC_TIME_TRAVEL_NOT_SUPPORTED", "ROW_LEVEL_SECURITY_COLUMN_MASK_FEATURE_NOT_SUPPORTED"),
)


def is_absent(error: BaseException, location: TableLocation) -> bool:
    """Return True if an error says that nothing stands there; at a path, no Delta table."""
    return _is_one(error, _ABSENT) or (not location.is_name and is_no_delta(error))


def is_no_delta(error: BaseException) -> bool:
    """Return whether an error says that the table is no Delta table: of another format, or without its files."""
    return _is_one(error, _NOT_DELTA)


def has_no_versions(error: BaseException, location: TableLocation) -> bool:
    """Return True if an error says that what stands there can be read as it is, but at no version."""
    return location.is_name and _is_one(error, (*_WITHOUT_VERSIONS, *_NOT_DELTA))


def _is_one(error: BaseException, conditions: Iterable[str]) -> bool:
    """Return True if an error has one of these conditions, or one below them."""
    error_condition = f"{condition(error)}."
    return any(error_condition.startswith(f"{known_condition}.") for known_condition in conditions)
