"""The SQL that brings rows into a table, word by word: it has to run on Spark Connect as well."""

from __future__ import annotations

import re
from typing import Any

import pytest

from routing.config import TableLocation
from routing.delta import spark_tables
from routing.errors import StorageError


class Session:
    """A stand-in for Spark that stores the SQL."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.views: list[str] = []
        self.catalog = self

    def sql(self, text: str) -> Session:
        self.texts.append(text)
        return self

    def collect(self) -> None:
        pass

    def dropTempView(self, name: str) -> None:  # noqa: N802
        self.views.remove(name)


class Rows:
    """A stand-in for a DataFrame."""

    def __init__(self, session: Session, *columns: str) -> None:
        self.sparkSession, self.columns = session, list(columns)

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self.sparkSession.views.append(name)


def merged(location: TableLocation, *columns: str, **options: Any) -> str:
    session = Session()
    spark_tables.merge(Rows(session, *columns), "routes", location, ["k"], **options)  # type: ignore[arg-type]
    assert session.views == []
    (text,) = session.texts
    # The name of the view is another one each time.
    return re.sub(r"`sbroute_merge_[0-9]+`", "`view`", text)


def test_rows_replace_are_removed_and_added() -> None:
    assert merged(TableLocation("/data/a`b"), "k", "v", spark_tables.REMOVE) == (
        "MERGE INTO `delta`.`/data/a``b` AS t USING `view` AS s ON t.`k` <=> s.`k`"
        " WHEN MATCHED AND s.`_remove` THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET t.`k` = s.`k`, t.`v` = s.`v`"
        " WHEN NOT MATCHED AND NOT s.`_remove` THEN INSERT (`k`, `v`) VALUES (s.`k`, s.`v`)"
    )


def test_rows_are_only_added() -> None:
    assert merged(TableLocation("main.broker.m", is_name=True), "k", "v", insert_only=True, folded=("k",)) == (
        "MERGE INTO `main`.`broker`.`m` AS t USING `view` AS s ON lower(t.`k`) <=> lower(s.`k`)"
        " WHEN NOT MATCHED THEN INSERT (`k`, `v`) VALUES (s.`k`, s.`v`)"
    )


def test_the_view_is_dropped_where_the_merge_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()

    def failing(text: str) -> Session:
        raise ValueError("disk full")

    monkeypatch.setattr(session, "sql", failing)
    rows: Any = Rows(session, "k")
    with pytest.raises(StorageError, match=r"writing tables\.routes to /data: disk full"):
        spark_tables.merge(rows, "tables.routes", TableLocation("/data"), ["k"])
    assert session.views == []
