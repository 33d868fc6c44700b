"""The page of a code: cause, example, remedy. They are data of the package, so that a wheel has them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import resources

from routing.errors import ContractError
from routing.features.lint.catalogue import BY_CODE
from routing.features.lint.custom_rules import CustomRule
from routing.features.lint.lint_settings import check_code


def page(code: str, rules: Sequence[CustomRule] = ()) -> str:
    """Return the page of a code, in any case; that of a custom rule is its docstring.

    Raises ContractError where there is no such code.
    """
    wanted = code.upper()
    rules_by_code = {rule.code: rule for rule in rules}
    fault = check_code(wanted, list(rules_by_code))
    if fault:
        raise ContractError(fault, "sbroute lint --explain CODE")
    if wanted in rules_by_code:
        return _own_page(rules_by_code[wanted])
    return (resources.files("routing.features.lint") / "pages" / f"{BY_CODE[wanted].code}.md").read_text("utf-8")


def _own_page(rule: CustomRule) -> str:
    kind = rule.kind
    docstring = inspect.getdoc(rule.function)
    parts = [f"# {kind.code}: {kind.title}", f"Severity: {kind.severity}", *([docstring] if docstring else [])]
    return "\n\n".join([*parts, "## Remedy", kind.advice]) + "\n"
