"""Another configuration for a benchmark's messages: the same tables, every address of a route on another port."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bare import opened


def move_routes(routes: str, moved: Path) -> Path:
    """Make the table of moved routes if it is missing. Routes to LOCAL stay unchanged."""
    import pyarrow.compute as pc
    from deltalake import write_deltalake

    if not Path(moved, "_delta_log").exists():
        rows = opened(routes).to_table()
        place = rows.schema.get_field_index("address")
        addresses = pc.replace_substring_regex(rows["address"], pattern=":[0-9]+$", replacement=":5022")
        write_deltalake(str(moved), rows.set_column(place, rows.schema.field("address"), addresses))
    return moved
