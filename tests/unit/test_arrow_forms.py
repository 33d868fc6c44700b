"""What Arrow reads of ids, beside the plain rules: equal for every text of one table."""

from __future__ import annotations

import pyarrow
import pytest

from routing.rules import text as plain
from routing.storage.arrow_forms import fold_texts, is_guid, read_brokers

GUID = "5FB8D92B-ed69-4c80-afbb-2aa6a7d3cb2d"
TEXTS = [
    None,
    "",
    " ",
    "\t\n\r ",
    "\u00a0",
    "\v",
    GUID,
    GUID.lower(),
    GUID.upper(),
    f" {GUID}\t",
    f"{{{GUID}}}",
    f"{{ {GUID} }}",
    f"{{{GUID}",
    f"{GUID}}}",
    f"{{{{{GUID}}}}}",
    "{}",
    "{ }",
    "00000000-0000-0000-0000-000000000000",
    "{00000000-0000-0000-0000-000000000000}",
    " 00000000-0000-0000-0000-000000000000",
    "00000000-0000-0000-0000-00000000000",
    GUID.replace("-", "—", 1),
    f"{GUID}\n",
    GUID[:-1] + "g",
    GUID[:-1] + "İ",
    "Sales_DB",
    "ÄÖÜ ß İı Kelvin \u212a",
    "😀-ID",
    "a\x00B",
]


@pytest.mark.parametrize("words", [TEXTS, *([word] for word in TEXTS)], ids=["all", *map(repr, TEXTS)])
def test_every_text_is_read_as_the_rules_read_it(words: list[str | None]) -> None:
    given = pyarrow.array(words, pyarrow.string())
    assert fold_texts(given).to_pylist() == [None if word is None else plain.fold(word) for word in words]
    assert is_guid(given).to_pylist() == [None if word is None else plain.is_guid(word) for word in words]
    assert read_brokers(given).to_pylist() == [plain.broker_id(word) for word in words]
