"""Make the events that SQL Server would report for a benchmark's messages, one each, from the result of `resolve`.

One of fifty events has another outcome, so that there are differences to find.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bare import opened

_READ = (
    *("instance_name", "database_name", "conversation_id", "is_initiator", "message_id", "to_service_name"),
    *("decided_at", "outcome", "broker_instance", "address"),
)
_ODD = 50


def observe(resolved: Path, observed: Path) -> Path:
    """Make the table ``observed_routing`` if it is missing, with the times and order of the messages."""
    import pyarrow
    from deltalake import write_deltalake

    if not Path(observed, "_delta_log").exists():
        batches = _batches(resolved)
        first = next(batches)
        rows = pyarrow.RecordBatchReader.from_batches(first.schema, _after(first, batches))
        write_deltalake(str(observed), rows)
    return observed


def _after(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _batches(resolved: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.compute as pc

    for batch in opened(str(resolved)).to_batches(columns=list(_READ)):
        if not len(batch):
            continue
        columns = dict(zip(_READ, batch.columns, strict=True))
        is_odd = pyarrow.array([place % _ODD == 0 for place in range(len(batch))])
        is_dropped = pc.equal(columns["outcome"], "DROPPED")
        is_network = pc.is_null(columns["database_name"])
        sends = pc.and_not(pc.is_in(columns["outcome"], pyarrow.array(["SENT", "FORWARDED"])), is_odd)
        yield pyarrow.record_batch(
            {
                **{name: columns[name] for name in _READ[:4]},
                "to_service_name": columns["to_service_name"],
                "observed_at": columns["decided_at"],
                "source": pc.if_else(is_dropped, "FORWARD_DROPPED", "CLASSIFY_EVENT"),
                "outcome": pc.if_else(is_odd, "DELAYED", columns["outcome"]),
                "error_number": pc.if_else(is_odd, 9793, None).cast("int32"),
                "to_broker_instance": columns["broker_instance"],
                "next_hop": pc.if_else(sends, columns["address"], None),
                "is_from_network": is_network,
                "event_hash": columns["message_id"],
            }
        )
