"""import catalog keeps queues and counts of endpoints as of the last export, and report reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routing.advice.remedy import TroubleKind
from routing.config import Config
from routing.views.report.reporting import read_troubles
from tests.exported import database, endpoint, export
from tests.exported_causes import QUEUE
from tests.imports import config_in, import_views, locations_of, no_spark, rows_at

pytest.importorskip("deltalake")
MONDAY, TUESDAY = "2026-01-05T18:00:00Z", "2026-01-06T18:00:00Z"
SHOP = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d")]
CLOSED = {"state": "CD", "service_name": "//orders", "is_initiator": 0, "endpoints": 700}
UNREAD = {**QUEUE, "activation_procedure": None, "messages": 7}
SEEN = ("tables.queues=data/queues", "tables.endpoint_counts=data/endpoint_counts")


def bring(folder: Path, config: Config, at: str = MONDAY, **views: Any) -> Any:
    """Import an export of SHOP with its databases and services."""
    services = {"Orders": [{"name": "//orders", "service_id": 7, "service_queue_id": 70}], "msdb": []}
    source = export(folder / at[:10], at=at, **{"databases": SHOP, "services": services, **views})
    return import_views(no_spark(), config, [str(source)])


def stored(config: Config, key: str) -> list[dict[str, Any]]:
    return rows_at(locations_of(config)[key])


def test_queues_and_counts_are_those_of_the_last_export(tmp_path: Path) -> None:
    config = config_in(tmp_path, *SEEN)
    monitors = [{"database_id": 5, "queue_id": 70, "tasks_waiting": 0, "state": "INACTIVE"}]
    views: dict[str, Any] = {"endpoint_counts": {"Orders": [CLOSED]}, "dm_broker_queue_monitors": monitors}
    done = bring(tmp_path, config, service_queues={"Orders": [UNREAD]}, **views)
    assert not any("not imported" in note for note in done.notes)
    [queue] = stored(config, "queues")
    assert (queue["name"], queue["messages"], queue["service_names"]) == ("StockQueue", 7, ["//orders"])
    assert (queue["tasks_waiting"], queue["monitor_state"]) == (0, "INACTIVE")
    [count] = stored(config, "endpoint_counts")
    assert (count["state"], count["service_name"], count["endpoints"]) == ("CD", "//orders", 700)

    later = {**UNREAD, "name": "Other", "object_id": 71}
    done = bring(tmp_path, config, TUESDAY, service_queues={"Orders": [later]})
    assert [row["name"] for row in stored(config, "queues")] == ["Other"]
    # What was not exported again stays.
    assert len(stored(config, "endpoint_counts")) == 1
    assert done.written["queues"] == {"added": 1, "removed": 1}


def test_rows_of_a_dropped_database_are_removed(tmp_path: Path) -> None:
    config = config_in(tmp_path, *SEEN)
    bring(tmp_path, config, service_queues={"Orders": [UNREAD]}, endpoint_counts={"Orders": [CLOSED]})
    bring(tmp_path, config, TUESDAY, databases=SHOP[:1], services={"msdb": []})
    assert stored(config, "queues") == stored(config, "endpoint_counts") == []


def test_without_the_tables_the_views_are_left_out(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    done = bring(tmp_path, config, service_queues={"Orders": [UNREAD]})
    [note] = [note for note in done.notes if "not imported" in note]
    assert "sys.service_queues" in note


def test_an_older_export_is_refused(tmp_path: Path) -> None:
    from routing.errors import InputError

    config = config_in(tmp_path, *SEEN)
    bring(tmp_path, config, TUESDAY, service_queues={"Orders": [UNREAD]})
    with pytest.raises(InputError, match="service_queues"):
        bring(tmp_path, config, MONDAY, service_queues={"Orders": [UNREAD]})


def test_report_reads_queues_and_endpoint_counts(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    config = config_in(tmp_path, *SEEN)
    bring(tmp_path, config, service_queues={"Orders": [UNREAD]}, endpoint_counts={"Orders": [CLOSED]})
    tables = {
        key: DeltaTable(locations_of(config)[key].text).to_pyarrow_table() for key in ("queues", "endpoint_counts")
    }
    troubles = read_troubles(tables)
    assert troubles is not None
    assert [(one.kind, one.count) for one in troubles] == [
        (TroubleKind.QUEUE_NOT_READ, 7),
        (TroubleKind.ENDPOINTS_LEAK, 700),
    ]
    assert read_troubles({}) is None


@pytest.mark.parametrize("column", ["service_id", "service_name"])
def test_endpoints_are_counted_if_the_export_has_no_counts(tmp_path: Path, column: str) -> None:
    config = config_in(tmp_path, *SEEN)
    service = {"service_id": 7} if column == "service_id" else {"service_name": "//orders"}
    closed = [endpoint(number, is_initiator=0, state="closed", **service) for number in range(120)]
    bring(tmp_path, config, conversation_endpoints={"Orders": closed, "msdb": [endpoint(1, state=None)]})
    [count] = stored(config, "endpoint_counts")
    assert [count[name] for name in ("state", "service_name", "is_initiator", "endpoints")] == [
        *("CD", "//orders", False, 120)
    ]
    # Counts of the queries come first, also if there is none of a database.
    bring(tmp_path, config, TUESDAY, conversation_endpoints={"Orders": closed}, endpoint_counts={"Orders": []})
    assert stored(config, "endpoint_counts") == []


def test_endpoints_of_services_without_ids_have_no_service(tmp_path: Path) -> None:
    config = config_in(tmp_path, *SEEN)
    services = {"Orders": [{"name": "//a"}, {"name": "//b"}]}
    bring(tmp_path, config, services=services, conversation_endpoints={"Orders": [endpoint(1, state="CO")]})
    assert [count["service_name"] for count in stored(config, "endpoint_counts")] == [None]
