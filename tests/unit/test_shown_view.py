"""The tables and versions behind a catalog's view, from DESCRIBE TABLE EXTENDED."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.config import TableLocation
from routing.delta.current_routes_view import location_of_view, read_view
from routing.tables import sql_statements
from tests.stored import config_of

OURS = (
    "SELECT r.* FROM (SELECT * FROM {0} VERSION AS OF 41) AS r LEFT JOIN (SELECT instance_name, message_id,"
    " max(attempt) AS last_attempt FROM (SELECT * FROM {0} VERSION AS OF 41) WHERE attempt > 1"
    " GROUP BY instance_name, message_id) AS l ON r.message_id = l.message_id"
)
MADE_IN = {"View Catalog and Namespace": "`spark_catalog`.`default`"}
# The view's text, the tables that it selects from, and the version.
VIEWS = {
    "as this release makes it": (
        OURS.format("`broker`.`resolved_routes`"),
        {"spark_catalog.broker.resolved_routes"},
        41,
    ),
    "in a catalog": (OURS.format("`main`.`broker`.`resolved_routes`"), {"main.broker.resolved_routes"}, 41),
    "of no version": (
        "SELECT r.* FROM `broker`.`resolved_routes` AS r LEFT JOIN (SELECT 1)",
        {"spark_catalog.broker.resolved_routes"},
        None,
    ),
    "names with odd characters": (
        OURS.format("`o``dd`.`res--olved 'routes`"),
        {"spark_catalog.o`dd.res--olved 'routes"},
        41,
    ),
    "somebody's own": (
        "select * from other.orders join Broker . Lines using (id)",
        {"spark_catalog.other.orders", "spark_catalog.broker.lines"},
        None,
    ),
    "of a table in the session's schema": ("SELECT * FROM lines", {"spark_catalog.default.lines"}, None),
    "in a text and in comments": (
        "SELECT 'from a.b it\\'s from c.d' -- from e.f\n/* from\n g.h */ FROM i.j",
        {"spark_catalog.i.j"},
        None,
    ),
    "of nothing": ("SELECT 1 AS one", set(), None),
}


@pytest.mark.parametrize("what", VIEWS)
def test_the_table_and_version_of_a_view_are_read(what: str) -> None:
    text, tables, version = VIEWS[what]
    view_read = read_view({**MADE_IN, "View Text": text}, "another")
    assert {".".join(parts) for parts in view_read.tables} == tables
    assert view_read.version == version


def test_other_objects_have_no_table() -> None:
    view_read = read_view({"Provider": "delta", "Type": "MANAGED"}, "spark_catalog")
    assert (view_read.tables, view_read.version) == (frozenset(), None)


def test_the_catalog_of_the_session_is_the_default() -> None:
    text = OURS.format("`broker`.`resolved_routes`")
    assert read_view({"View Text": text}, "Main").tables == {("main", "broker", "resolved_routes")}


def test_the_view_is_named_by_the_configuration(tmp_path: Path) -> None:
    folder = tmp_path
    by_path = config_of(folder, folder, **_INPUTS)
    assert location_of_view(by_path) is None
    named = [f"output.{key}=main.broker.{key}" for key in ("resolved_routes", "runs")]
    location = location_of_view(config_of(folder, folder, *named, **_INPUTS))
    assert location == TableLocation("main.broker.current_routes", is_name=True)
    own = location_of_view(config_of(folder, folder, *named, "output.current_routes=main.v.mine", **_INPUTS))
    assert own == TableLocation("main.v.mine", is_name=True)
    assert sql_statements.sql_name(own) == "`main`.`v`.`mine`"


_INPUTS = dict.fromkeys(("routes", "databases", "services", "instances", "messages"), Path("/in/x"))
