"""Scripts for other databases are recognised, and T-SQL is never mistaken for one."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from routing.importing.other_dialects import find_dialect

OTHERS = {
    "MySQL": [
        "DELIMITER $$\n;\nCREATE FUNCTION f (p INT) RETURNS INT BEGIN RETURN 1; END $$\nDELIMITER ;",
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, PRIMARY KEY (id)) ENGINE=InnoDB DEFAULT CHARSET=utf8;",
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE n = 1;",
    ],
    "PostgreSQL": [
        "CREATE OR REPLACE FUNCTION f() RETURNS void AS $$\nBEGIN\n  NULL;\nEND;\n$$ LANGUAGE plpgsql;",
        "CREATE TABLE t (id SERIAL PRIMARY KEY, data jsonb);",
        "ALTER TABLE t OWNER TO app;",
        "COPY public.t (id) FROM stdin;\n1\tO'Brien\n\\.\n",
        "SELECT '1'::int;",
        "DO $body$\nDECLARE x int;\nBEGIN\nEND\n$body$;",
    ],
    "Oracle": [
        "CREATE OR REPLACE FUNCTION f (a IN varchar2) RETURN timestamp IS v timestamp; BEGIN RETURN v; END;\n/\n",
        "CREATE TABLE t (id NUMBER(10) PRIMARY KEY, name VARCHAR2(10 CHAR));",
        "INSERT INTO t SELECT seq.NEXTVAL FROM dual;",
        "BEGIN\n  EXECUTE IMMEDIATE 'DROP TABLE t';\nEND;\n/",
        "DECLARE\n  r t%ROWTYPE;\nBEGIN\n  NULL;\nEND;",
    ],
    "SQLite": [
        "PRAGMA foreign_keys = ON;\nCREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT);",
        "INSERT OR REPLACE INTO t VALUES (1);",
    ],
    "ClickHouse": ["CREATE TABLE t (`id` UInt64) ENGINE = ReplacingMergeTree ORDER BY id;"],
    "BigQuery": ["SELECT a FROM `project-1.data.t`;"],
    "DB2": ["CREATE TRIGGER t AFTER INSERT ON a FOR EACH STATEMENT MODE DB2SQL SET x = 1@"],
    "another database": [
        "CREATE VIEW v AS SELECT `a`.`id` FROM `a`;",
        "CREATE TABLE IF NOT EXISTS t (id INT);",
        r"INSERT INTO t VALUES (1,'it\'s');",
        "CREATE OR REPLACE VIEW v AS SELECT 1;",
        "COMMENT ON TABLE t IS 'x';",
        "CREATE PROCEDURE p()\nBEGIN\n  IF x THEN\n    SET y = 1;\n  END IF;\nEND;",
        "SELECT a FROM t LIMIT 5;",
    ],
    "Informix or Firebird": ["SET TERM ^ ;\nCREATE PROCEDURE p AS BEGIN SUSPEND; END^"],
}
TSQL = [
    "CREATE ROUTE r WITH ADDRESS = 'LOCAL'; -- like `a` in MySQL",
    "SELECT * FROM [Orders].[Items];\nGO\n",
    "CREATE OR ALTER VIEW v AS SELECT 1 AS a;",
    "SELECT geography::Point(1, 2, 4326); GRANT SEND ON SERVICE::s TO u;",
    "-- CREATE OR REPLACE FUNCTION\nSELECT 1;",
    "PRINT 'CREATE TABLE IF NOT EXISTS `t`';",
    "/* DELIMITER $$ */ SELECT SYSDATETIME();",
    "DECLARE @x int = 1 / 2;",
    "SELECT a AT TIME ZONE 'UTC' FROM t;",
    "CREATE TABLE t (serial int, number int, pragma int);",
    "DROP TABLE IF EXISTS t;",
    r"SELECT REPLACE(a, '\', 'x'), 'C:\'+b, 'D:\' AS c;",
    "WHILE 1 = 0 BEGIN SELECT 1; END IF 1 = 1 BEGIN SELECT 2; END WHILE 0 = 1 SELECT 3;",
    "",
]


@pytest.mark.parametrize(("dialect", "text"), [(name, text) for name, texts in OTHERS.items() for text in texts])
def test_another_database_is_named(dialect: str, text: str) -> None:
    assert find_dialect(text, PurePath("a.sql")) == dialect


@pytest.mark.parametrize("text", TSQL)
def test_tsql_is_read(text: str) -> None:
    assert find_dialect(text, PurePath("a.sql")) is None


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("mysql/V1__t.sql", "MySQL"),
        ("db/postgresql/V1__t.sql", "PostgreSQL"),
        ("schema-oracle.sql", "Oracle"),
        ("schema.sqlite.sql", "SQLite"),
        ("mssql/V1__t.sql", None),
    ],
)
def test_a_text_without_signs_is_known_by_its_name(path: str, dialect: str | None) -> None:
    assert find_dialect("CREATE TABLE t (id INT);", PurePath(path)) == dialect
    assert find_dialect("CREATE TABLE dbo.t (id INT);\nGO", PurePath(path)) is None


def test_no_script_of_the_examples_is_of_another_database() -> None:
    files = list(Path("conf/examples").rglob("*.sql")) + list(Path("routing").rglob("*.sql"))
    assert len(files) > 3
    assert [file for file in files if find_dialect(file.read_text(encoding="utf-8"), PurePath(file.name))] == []
