"""Text other than T-SQL: its batch is rejected with the line. A file of such text is not a script."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from routing.errors import InputError
from routing.importing.script_rows import read_scripts
from routing.importing.tsql.script_reader import ReadScript, read_script

ReadText = Callable[..., ReadScript]
ROUTE = "CREATE ROUTE r WITH ADDRESS = 'TCP://h:4022'"
PROSE = "the line is prose, not T-SQL: remove the line, or make it a comment (--)"
DASH = "the line begins with a dash, which is not T-SQL: remove it, or begin a comment with two hyphens (--)"
FENCE = "this is a Markdown code fence, not T-SQL: keep only the text between the fences"
OTHER = "which no statement does: remove the line, or make it a comment (--)"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Please run this on HUB", PROSE),
        ("Please run this on the hub:", PROSE),
        ("Run the script.", PROSE),
        ("Note: run this on HUB", PROSE),
        ("Führen Sie das auf HUB aus", PROSE),
        ("The hub-and-spoke routes", PROSE),
        ("Create the routes on the hub first", PROSE),
        ("Use this script to create the routes.", PROSE),
        ("Execute the following as sysadmin:", PROSE),
        ("If you are on HUB, you can skip this!", PROSE),
        ("Select database Sales, then you can go on.", PROSE),
        ("- routes of the hub", DASH),
        ("-routes of the hub", DASH),
        ("\u2014 routes of the hub", DASH),
        ("\u2013 routes of the hub", DASH),
        ("```", FENCE),
        ("```sql", FENCE),
        ("~~~ sql", FENCE),
        ("Step 1: create the route", PROSE),
        ("Dear all,", PROSE),
        ("Hello,", f"the line begins with 'Hello,', {OTHER}"),
        ("name,address", f"the line begins with 'name,', {OTHER}"),
        ("# Routes", f"the line begins with '#', {OTHER}"),
        ("## Routes of the hub", f"the line begins with '##', {OTHER}"),
        ("* routes", f"the line begins with '*', {OTHER}"),
        ("> routes", f"the line begins with '>', {OTHER}"),
        ("| name | address |", f"the line begins with '|', {OTHER}"),
        ("1. Create routes", f"the line begins with '1.', {OTHER}"),
        ("<html>", f"the line begins with '<', {OTHER}"),
        (
            "\u2022 routes",
            "SQL Server cannot parse the typographic character U+2022 (bullet) here",
        ),
    ],
)
def test_a_batch_that_begins_with_foreign_text_is_rejected(read: ReadText, line: str, why: str) -> None:
    script = read(f"\n-- hub\n{line}\n{ROUTE}\nGO\nDROP ROUTE last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    refused = [problem for problem in script.problems if problem.number == 102]
    assert (refused[0].line, refused[0].why) == (3, f"{why}; its batch does not run")
    assert all(problem.line in (3, 4) for problem in script.problems)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("\nPlease run this on HUB:\nthe routes are made there", 2, PROSE),
        ("We don't need\nthat route.", 1, PROSE),
        (f"- {ROUTE}\n", 1, DASH),
        (f"\u2014 {ROUTE}\n", 1, DASH),
        (f"```sql\n{ROUTE}\n```\n", 1, FENCE),
        (f"# Routes\n\n{ROUTE}\n", 1, f"the line begins with '#', {OTHER}"),
    ],
)
def test_a_file_of_only_foreign_text_is_not_a_script(text: str, line: int, why: str, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(text, encoding="utf-8")
    at = datetime(2024, 5, 1, tzinfo=timezone.utc)
    with pytest.raises(InputError, match="no T-SQL statement is found") as error:
        read_scripts([str(tmp_path / "notes.md")], instance="X", scripted_at=at)
    assert f"(line {line}: {why}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"```sql\nGO\n{ROUTE}\nGO\n```\n", [1, 5]),
        (f"PRINT 'x'\n{ROUTE}\n```\n", [3]),
        (f"{ROUTE} `", [1]),
        (f"Runbook\n=======\n{ROUTE}", [2]),
        (f"{ROUTE}\nGO\nThen do this on HUB", [3]),
        ("CREATE ROUTE r WITH ADDRESS = \u2018TCP://h:4022\u2019", [1]),
        (f"PRINT \u201cx\u201d\n{ROUTE} \u2014 the route", [1, 2]),
        (f"{{% if env == 'prod' %}}\n{ROUTE}\n{{%- else %}}\n{ROUTE}\n{{% endif %}}", [1, 3, 5]),
        (f"{{{{- if .Values.prod }}}}\n{ROUTE}\n{{{{- end }}}}", [1, 3]),
        (f"{ROUTE}\n{{{{#each hosts}}}}\n{ROUTE}\n{{{{/each}}}}", [2, 4]),
        (f"<# Add({', '.join(['name'] * 50)}); #>\n{ROUTE}", [1]),
        (f"#{{if Broker}}\n{ROUTE}\n#{{/if}}", [1, 3]),
    ],
)
def test_each_foreign_line_is_named(read: ReadText, text: str, lines: list[int]) -> None:
    problems = read(text).problems
    assert [problem.line for problem in problems if problem.number == 102] == lines


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("{% if env == 'prod' %}", "{% endif %}"),
        ("{%- for h in hosts -%}\nGO\n{% if h %}", "{% endif %}\nGO\n{% endfor %}"),
        ("{{#each hosts}}", "{{/each}}"),
        ("<# foreach (var host in hosts) { #>", "<# } #>"),
        ('<#@ template language="C#" #>\nGO\n<# if (name == "#") { #>', "<# } #>"),
        ("{{- range .Hosts }}", "{{- end }}"),
        ("#{if Broker}", "#{/if}"),
    ],
)
def test_batches_in_a_template_block_are_refused(read: ReadText, first: str, last: str) -> None:
    middle = f"{ROUTE}\nGO\n{{% set x = 1 %}}\nGO\nDROP ROUTE inside"
    script = read(f"DROP ROUTE before\nGO\n{first}\nGO\n{middle}\nGO\n{last}\nGO\nDROP ROUTE later")
    assert [statement.name for statement in script.statements] == ["before", "later"]
    refused = [problem.why for problem in script.problems if "stands in a template block" in problem.why]
    assert [why.partition(":")[0] for why in refused] == ["CREATE ROUTE 'r'", "DROP ROUTE 'inside'"]


@pytest.mark.parametrize(
    "before",
    [
        "here:\n",
        "here: ",
        "-- Please run this on HUB\n",
        "/* - x\n``` */ ",
        "dbo.p\n",
        "p\n",
        "p a, b\n",
        "p a,\n b\n",
        "p a OUTPUT\n",
        "dbo.add_note N'say hello world now.'\n",
        "#p\n",
        "(SELECT 1 AS a)\n",
        "SELECT a b FROM c\n",
        "SELECT this FROM that WHERE the = 1\n",
        "PRINT N'We are done now.\nThe end.'\n",
        ";WITH x AS (SELECT 1 AS a) SELECT a FROM x\n",
        "PRINT '\u2014 \u2018x\u2019 `'\n",
        "SELECT 1 AS [\u2014]\n",
        "# -- a comment of another language\n#\nGO\n",
        "USE <database, sysname, db>\n",
        "EXEC the b\n",
        "DISABLE TRIGGER this ON the\n",
    ],
)
def test_valid_first_lines_are_accepted(before: str) -> None:
    script = read_script(
        f"{before}{ROUTE}\nGO\n",
        file="f.sql",
        instance="X",
        database="db",
        scripted_at=datetime(2024, 5, 1, tzinfo=timezone.utc),
    )
    assert [statement.name for statement in script.statements] == ["r"]
    assert [problem for problem in script.problems if not problem.counted] == []
