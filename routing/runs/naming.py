"""What OpenLineage calls a table and a run: names by which other tools know the same things."""

from __future__ import annotations

import json
import re
import uuid

from routing.config import LineageSettings, TableLocation

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(.*)", re.DOTALL)
# The schemes that stand for one store, and the one by which OpenLineage knows it; names there begin with no slash.
_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("abfs", "abfss"), "abfss"),
    **dict.fromkeys(("wasb", "wasbs"), "wasbs"),
    "gs": "gs",
}


def dataset_of(location: TableLocation, settings: LineageSettings) -> tuple[str, str]:
    """Return a table's namespace and name: ``file`` and path, ``s3://bucket`` and key, catalog and name."""
    if location.is_name:
        return settings.catalog_namespace or settings.namespace, location.text
    uri = _URI.fullmatch(location.text)
    if uri is None:
        return "file", location.text
    scheme, authority, path = uri[1].lower(), uri[2] or "", uri[3].strip("/")
    if scheme in _STORES:
        return f"{_STORES[scheme]}://{authority}", path or "/"
    return f"{scheme}://{authority}" if authority else scheme, f"/{path}"


def uuid_of(run_id: str, runs: TableLocation) -> str:
    """Return a run's id where it is a UUID, else one made of it and of its job's table ``runs``, ever the same."""
    try:
        if str(uuid.UUID(run_id)) == run_id.lower():
            return run_id.lower()
    except ValueError:
        # An id of a scheduler's own.
        pass
    # As JSON, which writes every character in ASCII.
    return str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([runs.text, run_id])))
