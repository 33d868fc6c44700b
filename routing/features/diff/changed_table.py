"""The table of changed messages, replaced as a whole in one commit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from routing.config import Config, TableLocation
from routing.delta.commits import is_local
from routing.delta.local_tables import UnreadableTable, write_new
from routing.delta.opening import OpenedTable, TableOpener
from routing.errors import OutputError, StorageError, first_sentence, join_bounded
from routing.schemas import MESSAGE_CHANGES
from routing.tables.table_columns import columns_in
from routing.tables.table_shapes import differences, lacks, types_of

if TYPE_CHECKING:
    import pyarrow

_KEY = "message_changes"


def place_of(text: str, configs: Iterable[Config]) -> TableLocation:
    """Parse the location of ``--out``; a path belongs to the working folder. Raises OutputError.

    Raises OutputError where it is a table of a configuration, which would be lost.
    """
    place = TableLocation.parse(text, str(Path.cwd()))
    for config in configs:
        for section, tables in (("tables", {**config.tables, **config.kept}), ("output", config.output)):
            for key, location in tables.items():
                if _is_same(location, place):
                    raise OutputError.out_is_taken(str(place), f"is {section}.{key} of the configuration")
    return place


def _is_same(one: TableLocation, other: TableLocation) -> bool:
    """Return True if two tables are one, also by another way through the folders."""
    if not (is_local(one) and is_local(other)):
        return str(one) == str(other)
    return Path(one.text).resolve() == Path(other.text).resolve()


def check(opener: TableOpener, place: TableLocation) -> OpenedTable | None:
    """Return the table that is to be replaced; None where none stands.

    Raises OutputError where it is another one.
    """
    place = opener.placed("--out", place)
    opened = opener.find("--out", place)
    if opened is not None:
        types = types_of(opened.rows)
        if lacks(types, MESSAGE_CHANGES) is None:
            why = join_bounded(differences(types, MESSAGE_CHANGES), "difference")
            raise OutputError.out_is_taken(str(place), f"holds a table of another schema, {why}")
        return opened
    folder = Path(place.text)
    if is_local(place) and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError.out_is_taken(str(place), "is not empty and holds no Delta table")
    return None


def replace_table(opener: TableOpener, place: TableLocation, rows: pyarrow.Table) -> None:
    """Write changed messages in place of what stands there, in one commit. Raises OutputError, StorageError."""
    place = opener.placed("--out", place)
    replaced = check(opener, place)
    writer = opener.open_to_write(place, None if replaced is None else replaced.version)
    if isinstance(writer, UnreadableTable):
        _write_by_spark(opener, place, writer, rows)
        return
    try:
        if writer is None:
            write_new(place, rows)
        else:
            writer.commit(rows, adds=False)
    except Exception as error:
        raise StorageError.failed(f"writing --out to {place}", first_sentence(error)) from error


def _write_by_spark(opener: TableOpener, place: TableLocation, why: UnreadableTable, rows: pyarrow.Table) -> None:
    spark = opener.start_for("--out", "written", why)
    from routing.delta import spark_tables
    from routing.tables import frames

    names = MESSAGE_CHANGES.names
    columns = columns_in(rows, MESSAGE_CHANGES, {name: name for name in names})
    frame = frames.frame_of_tuples(spark, columns.rows(*names), MESSAGE_CHANGES.optional())
    spark_tables.overwrite(frame, _KEY, place, "sbroute diff")
