"""How a broker instance is read on the way of messages and dialogs: DataFrame → DataFrame, in steps.

Spark puts an expression in the place of every column that names it, unless a projection of its own has it. What is
trimmed, looked at, trimmed again and folded would be made thirty times over in one expression, and the code of it
would be longer than Java compiles.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages import ids
from routing.terms import BLANKS, ZERO_GUID

_GUID_LENGTH = 36


def read_brokers(rows: DataFrame, **given: str) -> DataFrame:
    """Rows with more columns, each by its name the broker instance that the text of another column gives.

    As it is compared and written (`rules.text.broker_id`): no blanks, no braces, folded; null when none. Narrow;
    every row is kept.
    """
    found = rows.withColumns({name: _trimmed(F.col(text)) for name, text in given.items()})
    steps: tuple[Callable[[Column], Column], ...] = (_without_braces, ids.fold, _if_an_id)
    for step in steps:
        found = found.withColumns({name: step(F.col(name)) for name in given})
    return found


def _trimmed(text: Column) -> Column:
    """No blanks around; what is as long as a GUID and has nothing to be taken off is spared that, which is slow."""
    first, last = text.substr(1, 1), text.substr(-1, 1)
    is_bare = (F.length(text) == _GUID_LENGTH) & ~first.isin("{", *BLANKS) & ~last.isin(*BLANKS)
    return F.when(is_bare, text).otherwise(F.btrim(text, F.lit(BLANKS)))


def _without_braces(text: Column) -> Column:
    inner = F.btrim(text.substr(F.lit(2), F.length(text) - 2), F.lit(BLANKS))
    return F.when(text.startswith("{") & text.endswith("}"), inner).otherwise(text)


def _if_an_id(text: Column) -> Column:
    return F.when(~text.isin("", ZERO_GUID), text)
