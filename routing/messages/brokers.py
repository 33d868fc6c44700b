"""How a broker instance is read on the way of messages and dialogs: DataFrame → DataFrame, in steps.

Spark puts an expression in the place of every column that names it, unless a projection of its own has it. What is
trimmed, looked at, trimmed again and folded would be made thirty times over in one expression, and the code of it
would be longer than Java compiles.
"""

from __future__ import annotations

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
    # What is never null takes half the code.
    found = rows.withColumns({name: F.coalesce(text, F.lit("")) for name, text in given.items()})
    for step in (_folded, _without_braces, _if_an_id):
        found = found.withColumns({name: step(F.col(name)) for name in given})
    return found


def _folded(text: Column) -> Column:
    """No blanks around, folded; what is as long as a GUID and bare is spared what takes time.

    Blanks come before the digits, and braces after the letters.
    """
    is_ascii = (F.length(text) == _GUID_LENGTH) & (F.octet_length(text) == _GUID_LENGTH)
    is_bare = is_ascii & text.between("0", "z") & (text.substr(-1, 1) > " ")
    return F.when(is_bare, F.lower(text)).otherwise(ids.fold_any(F.btrim(text, F.lit(BLANKS))))


def _without_braces(text: Column) -> Column:
    inner = F.btrim(text.substr(F.lit(2), F.length(text) - 2), F.lit(BLANKS))
    return F.when(text.startswith("{") & text.endswith("}"), inner).otherwise(text)


def _if_an_id(text: Column) -> Column:
    return F.when((text != "") & (text != ZERO_GUID), text)
