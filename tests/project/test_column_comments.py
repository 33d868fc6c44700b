"""The comments of catalog columns are the meanings in tables.md."""

from __future__ import annotations

from routing.tables.column_comments import comments_of
from tests.column_comments import FILE, ROOT, SCHEMAS, as_file, find_comments

PAGE = (ROOT / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")


def test_stored_comments_equal_those_of_the_page() -> None:
    assert FILE.read_text(encoding="utf-8") == as_file(PAGE), "make docs-output writes it"


def test_every_column_has_a_plain_comment() -> None:
    for table, schema in SCHEMAS.items():
        comments = comments_of(table)
        assert list(comments) == schema.names
        assert [text for text in comments.values() if not text.strip() or set("`[*&") & set(text)] == []


def test_comments_come_from_rows_and_referenced_tables() -> None:
    comments = find_comments(PAGE)
    assert comments["routes"]["address"] == "LOCAL, TRANSPORT or a network address"
    assert comments["routes"]["valid_to"].startswith("valid_from, valid_to: when this version begins")
    assert comments["pending_messages"]["hops_remaining"] == comments["messages"]["hops_remaining"]
    assert (
        comments["pending_messages"]["attempt"]
        == "the attempt of its last row in resolved_routes, or 0 without one"
    )
