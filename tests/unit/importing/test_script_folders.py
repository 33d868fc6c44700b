"""The scripts of a folder: their order, and the ones that a deployment skips because of their names."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from routing.errors import InputError
from routing.importing.changelogs import natural_key
from routing.importing.script_folders import (
    arrange,
    is_undo,
    refuse_unknown,
    should_execute,
    without_undo,
)

TOP = Path("/scripts")


def arranged(*names: str, environment: str | None = None) -> tuple[list[str], list[str], set[str]]:
    """Arrange files that come by the text of their names."""
    notes: list[str] = []
    environments: set[str] = set()
    files = arrange(TOP, [TOP / name for name in sorted(names)], environment, notes, environments)
    return [file.relative_to(TOP).as_posix() for file in files], notes, environments


@pytest.mark.parametrize(
    "order",
    [
        ["V1__a.sql", "V1_1__b.sql", "V1.2__c.sql", "V2__d.sql", "V10__e.sql", "V20240101__f.sql", "R__a.sql"],
        ["Script0009 - a.sql", "Script0010 - b.sql", "Script11 - c.sql"],
        ["1_a.sql", "2_b.sql", "2.1_c.sql", "10_d.sql"],
        ["1.0_a.sql", "1.1_b.sql", "1.10_c.sql"],
        ["2024-01-02 a.sql", "2024-01-10 b.sql", "2024-11-01 a.sql"],
        ["1/2_z.sql", "2/1_y.sql", "10/1_x.sql"],
        ["release 9/a.sql", "release 10/a.sql"],
        ["b/V1__b.sql", "a/V2__a.sql", "b/V10__c.sql", "a/R__z.sql"],
        ["up/0001_a.sql", "up/0010_b.sql", "views/v.sql", "sprocs/p.sql", "permissions/g.sql"],
        ["beforeMigrate__a.sql", "V1__a.sql", "afterMigrate.sql"],
        ["Script.PreDeployment.sql", "a.sql", "z.sql", "Script.PostDeployment.sql"],
        ["routes.sql", "views.sql"],
    ],
    ids=lambda order: order[0],
)
def test_files_apply_in_the_order_of_their_tools(order: list[str]) -> None:
    assert arranged(*order) == (order, [], set())


UNDO = [
    *("U10__route.sql", "u1_2__x.sql", "x.down.sql", "x_down.sql", "0001-x.undo.sql", "x_rollback.sql"),
    *("Rollback routes.sql", "RollbackRoutes.sql", "roll-back.sql", "uninstall.sql", "UninstallBroker.sql"),
    *(
        "undo/x.sql",
        "2024_init/down.sql",
        "Rollback/1.sql",
        "down/0001.sql",
        "revert/routes.sql",
        "afterUndo__x.sql",
        "afterMigrateError.sql",
        "beforeClean.sql",
        "_rollback/1.sql",
        "undo_scripts/1.sql",
        "desinstalar.sql",
        "R\u00fcckg\u00e4ngig_1.sql",
        "deshacer_rutas.sql",
        "\u043e\u0442\u043a\u0430\u0442.sql",
        "fix-backward.sql",
        "V3__x.undo.sql",
        "V3__x.Rollback.sql",
    ),
]
PLAIN = [
    *(
        "V10__undo_log.sql",
        "V3__rollback_table.sql",
        "R__U1.sql",
        "Update10.sql",
        "U10_route.sql",
        "down_payment.sql",
    ),
    *("fundout.sql", "countdown.sql", "Mundos.sql", "B1__x.sql", "afterMigrate__x.sql", "setup.sql"),
]


def test_undo_scripts_are_left_out() -> None:
    assert [name for name in UNDO if not is_undo(PurePosixPath(name))] == []
    assert [name for name in PLAIN if is_undo(PurePosixPath(name))] == []
    files, notes, _ = arranged("V1__a.sql", "U1__a.sql", "down/b.sql")
    assert files == ["V1__a.sql"]
    which = "skipped, since they undo other scripts (name them to apply them)"
    assert notes == [f"{which}: 2 files: /scripts/down/b.sql; /scripts/U1__a.sql"]


def test_of_two_migrations_with_one_version_one_may_undo() -> None:
    names = ["V1__undo_log.sql", "V2__a.sql", "V2__a_rollback.sql", "V3__undo_x.sql", "V3__x.sql"]
    assert arranged(*names)[0] == ["V1__undo_log.sql", "V2__a.sql", "V3__x.sql"]


def test_a_baseline_replaces_earlier_migrations() -> None:
    files, [note], _ = arranged("V1__a.sql", "V2__b.sql", "B2__all.sql", "V3__c.sql", "B1__old.sql")
    assert files == ["B2__all.sql", "V3__c.sql"]
    assert "baseline" in note
    assert "3 files" in note


@pytest.mark.parametrize(
    ("names", "environments", "left"),
    [
        (["r.PROD.sql", "r.TEST.sql", "r.sql"], {"prod", "test"}, ["r.sql"]),
        (["r.uat2.sql", "s.sql"], {"uat2"}, ["s.sql"]),
        (["PROD.0002_r.ENV.sql", "TEST.0002_r.ENV.sql"], {"prod", "test"}, []),
        (["0002_r.PROD.ENV.sql", "0002_r.TEST.env.sql"], {"prod", "test"}, []),
        (["BERLIN.0002_r.ENV.sql", "0002_r.sql"], {"berlin"}, ["0002_r.sql"]),
        (["0002_r.ENV.BERLIN.sql", "0002_r.sql"], {"berlin"}, ["0002_r.sql"]),
        (["01_dev_routes.sql", "01_prod_routes.sql"], {"dev", "prod"}, []),
        (["dev-routes.sql", "staging-routes.sql"], {"dev", "staging"}, []),
        (["a/r_acc.sql", "a/r_test.sql", "b/r_test.sql"], {"acc", "test"}, ["b/r_test.sql"]),
        (["routes-dev.sql", "s.sql"], {"dev"}, ["s.sql"]),
        (["qa_routes.sql", "s.sql"], {"qa"}, ["s.sql"]),
        (["r-dev.sql", "r.test.sql", "local r.sql"], {"dev", "test", "local"}, []),
        (["r (dev).sql", "RTest.sql", "test2/r.sql"], {"dev", "test", "test2"}, []),
        (["r-preprod.sql", "r-pre-prod2.sql", "r-prod.sql"], {"preprod", "preprod2", "prod"}, []),
        (["r.prod-eu.sql", "r.us-prod.sql", "r.sql"], {"prodeu", "usprod"}, ["r.sql"]),
        (["1_routes_test.sql", "2_routes_acc.sql"], {"test", "acc"}, []),
        (["dev/r.sql", "s.sql"], {"dev"}, ["s.sql"]),
        (["r/dev.sql", "r/test.sql", "s.sql"], {"dev", "test"}, ["s.sql"]),
        (["r.sql", "r_prod.sql", "test-r.sql"], {"prod", "test"}, ["r.sql"]),
        (["PROD/r.sql", "TEST/r.sql", "TEST/s.sql", "all/r.sql"], {"prod", "test"}, ["all/r.sql"]),
        (["r.hml.sql", "r.homolog.sql"], {"hml", "homolog"}, []),
        (["shop.account.sql", "shop.stock.sql"], set(), ["shop.account.sql", "shop.stock.sql"]),
        # These may be names of anything else.
        (["create_test.sql", "prod.sql"], set(), ["create_test.sql", "prod.sql"]),
        (["demo.sql", "test.sql"], set(), ["demo.sql", "test.sql"]),
        (["Order.sql", "AcceptOrder.sql"], set(), ["AcceptOrder.sql", "Order.sql"]),
        (["pre_r.sql", "post_r.sql", "r.sql"], set(), ["post_r.sql", "pre_r.sql", "r.sql"]),
        (["dev/r.sql", "dev/x/s.sql"], set(), ["dev/r.sql", "dev/x/s.sql"]),
        (["Production.Orders.sql", "Sales.Orders.sql"], set(), ["Production.Orders.sql", "Sales.Orders.sql"]),
        (["dbo.Orders.sql", "dbo.Items.sql"], set(), ["dbo.Items.sql", "dbo.Orders.sql"]),
        (["test_r.sql", "test_s.sql"], set(), ["test_r.sql", "test_s.sql"]),
    ],
)
def test_scripts_of_environments_are_left_out(names: list[str], environments: set[str], left: list[str]) -> None:
    files, notes, found = arranged(*names)
    assert (files, found) == (left, environments)
    assert len(notes) == (1 if environments else 0)
    assert all(name.upper() in notes[0] for name in environments)


def test_scripts_of_the_chosen_environment_are_read() -> None:
    names = ["r.PROD.sql", "r.Test.sql", "r.sql", "s.K1.sql", "s.K2.sql"]
    assert arranged(*names, environment="test")[0] == ["r.sql", "r.Test.sql", "s.K1.sql", "s.K2.sql"]
    files, _, environments = arranged(*names, environment="K1")
    assert files == ["r.sql", "s.K1.sql"]
    refuse_unknown("k2", environments)
    assert arranged("r-pre-prod.sql", "r-prod.sql", environment="Pre-Prod")[0] == ["r-pre-prod.sql"]
    assert arranged("r.prod-eu.sql", "r.prod-us.sql", environment="prod-eu")[0] == ["r.prod-eu.sql"]
    paths = [TOP / "PROD/r.sql", TOP / "TEST/r.sql"]
    assert arrange(TOP, paths, None, [], set(), ["prod", "Test"]) == paths
    assert arranged("K1/r.sql", "PROD/r.sql", "s.sql", environment="K1")[0] == ["K1/r.sql", "s.sql"]
    with pytest.raises(InputError, match="PROD, TEST"):
        refuse_unknown("live", arranged("r.PROD.sql", "r.Test.sql")[2])


def test_numbers_of_any_length_are_compared() -> None:
    names = ["a", "a1", "a01.5", "a1.10", "a2", "a10", "a10b", "b"]
    mixed = ["b", "a10b", *names[:6]]
    assert sorted(mixed, key=natural_key) == names


@pytest.mark.parametrize(
    ("up", "down"),
    [
        ("-- +goose Up", "-- +goose Down"),
        ("-- migrate:up", "-- migrate:down"),
        ("--+migrate Up", "  -- +migrate Down notransaction"),
        ("-- Up Migration", "-- Down Migration"),
        ("--// first", "-- //@UNDO"),
        ("-- rambler up", "-- rambler down"),
        ("# --- !Ups", "# --- !Downs"),
        ("-- Up", "-- Down\r"),
    ],
)
def test_sections_that_undo_a_script_are_left_out(up: str, down: str) -> None:
    text = f"{up}\nCREATE ROUTE a\nGO\n{down}\nDROP ROUTE a\nGO\n"
    assert without_undo(text) == (f"{up}\nCREATE ROUTE a\nGO\n\n\n\n", 4)
    if "@" not in down:
        turned = f"{down}\nDROP ROUTE a\n{up}\nCREATE ROUTE a\n"
        assert without_undo(turned) == (f"\n\n{up}\nCREATE ROUTE a\n", 1)


def test_similar_comments_are_not_undo_sections() -> None:
    text = "-- down below\nPRINT '-- migrate:down'\n-- migrate: down the road\n/* -- Downs */\n"
    assert without_undo(text) == (text, None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (None, True),
        ("encoding=UTF-8\n# shouldExecute=false\n", True),
        ("executeInTransaction=false\nshouldExecute = false\n", False),
        ("flyway.shouldExecute=TRUE\n", True),
        ("shouldExecute=${stage}==prod\n", True),
        ("shouldExecute=${stage} != prod\n", False),
        ("shouldExecute=${on}\n", "${on}"),
        ("shouldExecute=${on}!=false\n", "${on}!=false"),
        ("shouldExecute=${stage}==prod && true\n", "${stage}==prod && true"),
    ],
)
def test_settings_of_flyway_leave_a_script_out(tmp_path: Path, settings: str | None, expected: bool | str) -> None:
    if settings is not None:
        (tmp_path / "V1__a.sql.conf").write_text(settings, encoding="utf-8")
    assert should_execute(tmp_path / "V1__a.sql", {"STAGE": "prod"}) == expected


@pytest.mark.parametrize(
    "folder", ["test", "Sales.Tests", "Unit Tests", "samples", "example", "docs/api", "tsqlt"]
)
def test_tests_and_samples_beside_scripts_are_left_out(folder: str) -> None:
    files, [note], _ = arranged("src/a.sql", f"{folder}/b.sql")
    assert files == ["src/a.sql"]
    assert note.startswith("skipped, tests and samples beside other scripts")
    assert arranged(f"{folder}/b.sql", "src/a.sql", environment="prod")[0] == ["src/a.sql"]
    # A folder with nothing else is what the caller wants.
    assert arranged(f"{folder}/a.sql", f"{folder}/b.sql")[:2] == ([f"{folder}/a.sql", f"{folder}/b.sql"], [])


@pytest.mark.parametrize("top", ["db", "."])
def test_changes_of_sqitch_apply_in_the_order_of_their_plan(tmp_path: Path, top: str) -> None:
    plan = (
        "%project=broker\n\nzeta 2024 A # first\n+alpha [zeta] 2024 A\n@v1 2024 A\n-gone 2024\n"
        "zeta [zeta@v1] 2024 A\n@v2 2024 A\n+ sub/x 2024 A\ntests/undo_x 2024 A\n"
    )
    (tmp_path / "db").mkdir()
    (tmp_path / top / "sqitch.plan").write_text(plan, encoding="utf-8")
    names = ["alpha", "other", "sub/x", "tests/undo_x", "zeta", "zeta@v1"]
    notes: list[str] = []
    scripts = [*(f"deploy/{name}" for name in names), "verify/zeta"]
    files = arrange(tmp_path, [tmp_path / f"db/{name}.sql" for name in scripts], None, notes, set())
    assert [file.relative_to(tmp_path / "db/deploy").as_posix() for file in files] == [
        *("zeta@v1.sql", "alpha.sql", "zeta.sql", "sub/x.sql", "tests/undo_x.sql"),
    ]
    assert [note.partition(": ")[0] for note in notes] == ["skipped, since sqitch.plan does not have them"]


def test_a_plan_beside_its_scripts_is_not_of_other_folders(tmp_path: Path) -> None:
    (tmp_path / "sqitch.plan").write_text("a 2024 A\n", encoding="utf-8")
    scripts = [tmp_path / "deploy/a.sql", tmp_path / "other/deploy/b.sql"]
    assert arrange(tmp_path, scripts, None, [], set()) == scripts


XML = "<databaseChangeLog>{}</databaseChangeLog>"
INCLUDES = [
    {"all.yaml": "databaseChangeLog:\n- include:\n    file: z.sql\n#   file: b.sql\n- include: {file: a.sql}\n"},
    {"all.json": '{"databaseChangeLog": [{"include": {"file": "z.sql"}}, {"include": {"file": "a.sql"}}]}'},
    {"x/all.xml": XML.format('<include file="../z.sql"/><!-- file="b.sql" --><sqlFile path=\'sub\\a.sql\'/>')},
    {
        "all.xml": XML.format('<include file="classpath:db/x/b.xml"/><include file="src/db/a.xml"/>'),
        "a.xml": XML.format('<include file="a.sql"/><include file="x/b.xml"/>'),
        "x/b.xml": XML.format('<includeAll path="../y/"/>'),
        "y/z.sql": "",
    },
]


@pytest.mark.parametrize("changelogs", INCLUDES)
def test_scripts_of_liquibase_apply_in_the_order_of_the_changelog(
    tmp_path: Path, changelogs: dict[str, str]
) -> None:
    names = ["a.sql", "b.sql", "y/z.sql" if len(changelogs) > 1 else "z.sql"]
    for name, text in changelogs.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = arrange(tmp_path, [tmp_path / name for name in names], None, [], set())
    # No changelog includes b.sql, which lies beside the others.
    assert [file.name for file in files] == ["z.sql", "a.sql"]


@pytest.mark.parametrize(
    ("changelog", "text"),
    [
        (
            "c.xml",
            XML.format('<rollback/><sqlFile path="b.sql"/><rollback>\n<sqlFile path="undo.sql"/></rollback>'),
        ),
        (
            "c.json",
            '{"databaseChangeLog": [{"path": "b.sql"}, {"rollback": [{"sqlFile": {"path": "undo.sql"}}]}]}',
        ),
        ("c.yaml", "databaseChangeLog:\n  rollback:\n  - path: undo.sql\n  changes:\n  - path: b.sql\n"),
    ],
)
def test_a_script_that_liquibase_runs_only_to_roll_back_is_left_out(
    tmp_path: Path, changelog: str, text: str
) -> None:
    (tmp_path / changelog).write_text(text, encoding="utf-8")
    files = arrange(tmp_path, [tmp_path / f"{name}.sql" for name in ("b", "undo")], None, [], set())
    assert [file.name for file in files] == ["b.sql"]


SELECTED = {
    "XML": ("all.xml", XML.format('<include file="a.sql" context="test"/><include file="b.sql" context=""/>')),
    "YAML": (
        "all.yaml",
        "databaseChangeLog:\n- include:\n    file: a.sql\n    context: test\n- include:\n    file: b.sql\n",
    ),
    "JSON": (
        "all.json",
        (
            '{"databaseChangeLog": [{"include": {"context": "test", "file": "a.sql"}},'
            ' {"include": {"file": "b.sql"}}]}'
        ),
    ),
    "changeset": (
        "all.xml",
        XML.format(
            '<changeSet id="1" context="test"><sqlFile path="a.sql"/></changeSet>'
            '<changeSet id="2" dbms="mssql"><sqlFile path="b.sql"/></changeSet>'
            '<changeSet id="3" dbms="oracle"><sqlFile path="c.sql"/></changeSet>'
        ),
    ),
}


@pytest.mark.parametrize(("changelog", "text"), SELECTED.values(), ids=SELECTED)
def test_scripts_of_a_context_are_noted_and_others_are_left_out(tmp_path: Path, changelog: str, text: str) -> None:
    (tmp_path / changelog).write_text(text, encoding="utf-8")
    notes: list[str] = []
    files = arrange(tmp_path, [tmp_path / f"{name}.sql" for name in "abc"], None, notes, set())
    assert [file.name for file in files] == ["a.sql", "b.sql"]
    left_out, applied = notes
    assert "no changelog includes them" in left_out
    assert left_out.endswith("c.sql")
    assert "only with context test: " in applied
    assert applied.endswith("a.sql")


_CHANGESET = "<changeSet>{}</changeSet>".format
# Of all scripts here, SQL Server gets a.sql.
OF_ONE_DATABASE = {
    "no such script": ("c.xml", XML.format('<include file="a.sql"/><changeSet dbms="h2"><sqlFile path="x.sql"/>')),
    "two scripts": ("c.xml", XML.format(_CHANGESET('<sqlFile dbms="h2" path="b.sql"/><sqlFile path="a.sql"/>'))),
    "in another order": (
        "c.xml",
        XML.format(_CHANGESET('<sqlFile path="a.sql" dbms="mssql"/><sqlFile path="b.sql" dbms="h2"/>')),
    ),
    "in JSON": (
        "c.json",
        (
            '{"databaseChangeLog": [{"changeSet": {"changes": [{"sqlFile": {"path": "a.sql", "dbms": "mssql"}},'
            ' {"sqlFile": {"dbms": "h2", "path": "b.sql"}}]}}]}'
        ),
    ),
    "in YAML": (
        "c.yaml",
        (
            "databaseChangeLog:\n- changeSet:\n    changes:\n    - sqlFile:\n        path: b.sql\n\n"
            "        dbms: h2\n    - sqlFile:\n        path: a.sql\n    dbms: h2, mssql\n"
        ),
    ),
    "in two changesets": (
        "c.xml",
        XML.format(
            '<changeSet dbms="h2"><sqlFile path="a.sql"/></changeSet>' + _CHANGESET('<sqlFile path="a.sql"/>')
        ),
    ),
    "a property": ("c.xml", XML.format('<include file="a.sql"/><property name="x" value="y" dbms="h2"/>')),
}


@pytest.mark.parametrize(("changelog", "text"), OF_ONE_DATABASE.values(), ids=OF_ONE_DATABASE)
def test_the_database_of_a_script_is_not_that_of_another(tmp_path: Path, changelog: str, text: str) -> None:
    (tmp_path / changelog).write_text(text, encoding="utf-8")
    names = ["a.sql", *(["b.sql"] if "b.sql" in text else [])]
    files = arrange(tmp_path, [tmp_path / name for name in names], None, [], set())
    assert [file.name for file in files] == ["a.sql"]


def test_the_scripts_of_an_ignored_changelog_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    outer = XML.format('<include file="x/inner.xml" ignore="true"/><include file="a.sql"/>')
    (tmp_path / "all.xml").write_text(outer, encoding="utf-8")
    (tmp_path / "x/inner.xml").write_text(XML.format('<include file="b.sql"/>'), encoding="utf-8")
    notes: list[str] = []
    files = arrange(tmp_path, [tmp_path / name for name in ("a.sql", "x/b.sql")], None, notes, set())
    assert [file.name for file in files] == ["a.sql"]
    assert [note.endswith("b.sql") for note in notes] == [True]


def test_a_changelog_in_a_context_has_scripts_of_that_context(tmp_path: Path) -> None:
    outer = XML.format('<include file="x/inner.xml" labels="v2"/><include file="${top}/c.sql"/>')
    (tmp_path / "x").mkdir()
    (tmp_path / "all.xml").write_text(outer, encoding="utf-8")
    (tmp_path / "x/inner.xml").write_text(XML.format('<includeAll path="sql/"/>'), encoding="utf-8")
    notes: list[str] = []
    names = ["x/sql/a.sql", "x/sql/b.sql", "c.sql"]
    # An unknown path may be that of any script.
    assert len(arrange(tmp_path, [tmp_path / name for name in names], None, notes, set())) == len(names)
    assert [note.partition(": ")[0] for note in notes] == [
        "applied, though Liquibase runs them only with labels v2"
    ]


@pytest.mark.parametrize("first", ["", ' context="test"'])
@pytest.mark.parametrize("second", ["", ' labels="v2"'])
def test_a_script_that_also_runs_without_a_context_has_no_note(tmp_path: Path, first: str, second: str) -> None:
    outer = XML.format(f'<include file="x/inner.xml"{first}/><include file="x/inner.xml"{second}/>')
    (tmp_path / "x").mkdir()
    (tmp_path / "all.xml").write_text(outer, encoding="utf-8")
    (tmp_path / "x/inner.xml").write_text(XML.format('<sqlFile path="x/a.sql"/>'), encoding="utf-8")
    notes: list[str] = []
    assert len(arrange(tmp_path, [tmp_path / "x/a.sql"], None, notes, set())) == 1
    assert len(notes) == (first != "" and second != "")


def test_the_delimiter_of_another_change_is_not_that_of_a_script(tmp_path: Path) -> None:
    changes = '<sql endDelimiter="@@">x @@</sql><sqlFile path="a.sql"/><sqlFile path="b.sql" endDelimiter="/"/>'
    (tmp_path / "all.xml").write_text(XML.format(f'<changeSet id="1">{changes}</changeSet>'), encoding="utf-8")
    delimiters: dict[Path, str] = {}
    arrange(tmp_path, [tmp_path / "a.sql", tmp_path / "b.sql"], None, [], set(), delimiters=delimiters)
    assert delimiters == {tmp_path / "a.sql": "", tmp_path / "b.sql": "/"}


def test_an_included_script_shows_that_its_sibling_is_of_an_environment() -> None:
    notes: list[str] = []
    main, test = TOP / "main.sql", TOP / "routes/test.sql"
    assert arrange(TOP, [main, test], None, notes, set(), included=[TOP / "routes/prod.sql"]) == [main]
    assert ["--environment applies one of TEST" in note for note in notes] == [True]


def test_a_folder_called_test_may_be_an_environment() -> None:
    names = ["src/a.sql", "test/b.sql"]
    assert arranged(*names, environment="TEST")[0] == names
    files, [note], environments = arranged(*names, "uat/b.sql")
    assert (files, environments) == (["src/a.sql"], {"test", "uat"})
    assert "--environment applies one of TEST, UAT" in note
