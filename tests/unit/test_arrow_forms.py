"""What Arrow reads of texts: as their table says, and equal to the plain rules for every character there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow
import pytest

from routing.storage.arrow_forms import fold_texts, is_guid, read_brokers
from tests.text_forms import FORMS, ascii_texts, differences, other_texts

# By name: as Arrow reads an array of texts.
ARROW: dict[str, Callable[[Any], Any]] = {"fold": fold_texts, "is_guid": is_guid, "broker_id": read_brokers}


@pytest.mark.parametrize("form", ARROW)
def test_each_text_is_read_as_its_table_says(form: str) -> None:
    words, expected = zip(*FORMS[form].table, strict=True)
    for given, wanted in ((words, expected), *(((word,), (one,)) for word, one in FORMS[form].table)):
        assert ARROW[form](pyarrow.array(given, pyarrow.string())).to_pylist() == list(wanted)


@pytest.mark.parametrize("form", ARROW)
def test_every_text_is_read_as_the_rules_read_it(form: str) -> None:
    words = [*ascii_texts(), *other_texts()]
    found = ARROW[form](pyarrow.array([*words, None], pyarrow.string())).to_pylist()
    assert found.pop() is None
    assert differences(words, found, list(map(FORMS[form].rule, words))) == []
