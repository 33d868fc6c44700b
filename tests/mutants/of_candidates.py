"""Mutants of the ranking of routes, in its rules and in Spark."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LISTED = ("tests/unit/test_plan_candidates.py",)
_RANKED = ("tests/spark/test_candidates.py", "tests/spark/test_candidate_table.py")
_RULES, _LISTS = "routing/rules/candidate_order.py", "routing/plan/candidate_lists.py"
_SPARK = "routing/messages/candidate_ranks.py"

MUTANTS = (
    Mutant(
        "candidates-first-search-first",
        "candidates: the last search comes first",
        _RULES,
        'OrderTerm("search", is_descending=True)',
        'OrderTerm("search")',
        _LISTED,
    ),
    Mutant(
        "candidates-equal-before-usable",
        "candidates: what is equal to another comes after what cannot be used",
        _RULES,
        '    OrderTerm("is_equal"),\n    OrderTerm("is_usable", is_descending=True),\n',
        '    OrderTerm("is_usable", is_descending=True),\n',
        _LISTED,
    ),
    Mutant(
        "candidates-located-by-the-message",
        "candidates: LOCAL is located with the row's own broker instance",
        _RULES,
        "location=locate(instance, search.holders, search.sender, broker)",
        "location=search.location",
        _LISTED,
    ),
    Mutant(
        "candidates-of-step-4-always",
        "candidates: step 4's routes only where the message waits for a route",
        _LISTS,
        "if is_requested or one.step is not MatchingStep.ROUTE_REQUEST",
        "",
        _LISTED,
    ),
    Mutant(
        "candidates-without-unreached",
        "candidates: routes that never end a search are candidates",
        _LISTS,
        "keeps_unreached=True",
        "keeps_unreached=False",
        _LISTED,
    ),
    Mutant(
        "candidates-total-after-the-cut",
        "candidates_total counts what was cut as well",
        _LISTS,
        "self.rows += [(number, len(rows), last_search, *row)",
        "self.rows += [(number, len(ordered), last_search, *row)",
        _LISTED,
    ),
    Mutant(
        "candidates-ranked-by-id",
        "candidates: two rows of one message id are two messages",
        _SPARK,
        "Window.partitionBy(MESSAGE_ROW)",
        'Window.partitionBy("message_id")',
        _RANKED,
    ),
    Mutant(
        "candidates-chosen-of-any-search",
        "candidates: only the last search chooses",
        _SPARK,
        '(F.col("search") == F.col(LAST_SEARCH)) & (',
        "F.lit(True) & (",
        _RANKED,
    ),
    Mutant(
        "candidates-of-the-expired",
        "candidates: nothing is searched for a message of an expired dialog",
        _SPARK,
        'number = F.when(~F.col("is_expired"), number)',
        "number = number",
        _RANKED,
    ),
)
