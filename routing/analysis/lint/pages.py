"""The page of a code: cause, example, remedy. They are data of the package, so that a wheel has them."""

from __future__ import annotations

from importlib import resources

from routing.analysis.lint.catalogue import BY_CODE
from routing.analysis.lint.options import check_code
from routing.errors import ContractError


def page(code: str) -> str:
    """The page of a code, in any case. Raises ContractError where there is no such code."""
    wanted = code.upper()
    fault = check_code(wanted)
    if fault:
        raise ContractError(fault, "sbroute lint --explain CODE")
    return (resources.files("routing.analysis.lint") / "pages" / f"{BY_CODE[wanted].code}.md").read_text("utf-8")
