"""Measure how docstrings and pages read: the share of long, tangled, headless and dialect sentences."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

# Phrases that no colleague would use. English that is read easily does without them.
DIALECT = re.compile(
    r"\b(?:of (?:it|them|which|these|those|whom) (?:is|are|was|were|the|a|each|all|only)"
    r"|of (?:its|their|one's) own|as (?:it|they) (?:is|are|was|were)\b(?! (?:read|now|written|shown))"
    r"|all the same|besides|none of|anew|whoever|whatever (?:is|was)|but for|comes? to(?! (?:an|the) end)"
    r"|goes? on\b|took? place|put (?:back|right|down)|holds? (?:it|them)? ?to\b"
    r"|stands? (?:there|where|so|for|once|alone|in)|stood|is told|are told"
    r"|tells? (?:nothing|of|whether|that|it|how)|said of|says of|say of|nothing (?:tells|says|is|was|stops)"
    r"|no fault|is at fault|the way (?:of|back|there|it)|a way\b|ways\b|had one fate|meanwhile|one by one"
    r"|such as it is|would have to|there is none|there are none|of each other|in its place"
    r"|it is (?:that|not that)|not to be had|that which|those which|those that|others of)\b",
    re.IGNORECASE,
)
# A relative clause without a noun before it, outside questions.
HEADLESS = re.compile(
    r"\b(?:what|who|whose|whatever|whoever)\b(?! (?:is|are) (?:the|a|an)\b)(?=[^?]*$)", re.IGNORECASE
)
YOU = re.compile(r"\b(?:you|your|yours|we|our|let's)\b", re.IGNORECASE)
TARGETS = {"long": 4, "tangled": 10, "headless": 2, "dialect": 1}
"""The highest share of sentences with a mark, in per cent."""
_SECTION = re.compile(r"\n\s*(?:Args|Returns|Raises|Yields|Example|Examples):|\n\s*>>>")
_RULE = re.compile(r"\|[\s:|-]+\|?")
# Help, errors, notes and headings consist of these characters. Patterns and SQL have others.
_TEXT = re.compile(r"[\w ,.;:'()`/%–-]+")
_ITEM = re.compile(r"(?:[-*+]|\d+\.)\s+(.*)")


def page_blocks(text: str) -> Iterator[str]:
    """The paragraphs, items and longer table cells of a Markdown page."""
    is_code = is_comment = False
    words: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if re.match(r"(```|~~~)", bare):
            is_code = not is_code
            bare = ""
        elif is_code:
            continue
        is_comment = is_comment or bare.startswith("<!--")
        if is_comment:
            is_comment = "-->" not in bare
            bare = ""
        item = _ITEM.match(bare)
        if words and (not bare or item or bare.startswith(("#", "<", "|"))):
            yield " ".join(words)
            words = []
        if bare.startswith("|"):
            cells = [] if _RULE.fullmatch(bare) else re.split(r"(?<!\\)\|", bare.strip("|"))
            yield from (cell.strip() for cell in cells if len(cell.split()) >= 4)
        elif bare and not bare.startswith(("#", "<")):
            words.append(item[1] if item else bare)
    if words:
        yield " ".join(words)


def docstring_blocks(source: str) -> Iterator[str]:
    """Yield the paragraphs of a module's docstrings, without their sections and examples."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = _SECTION.split(ast.get_docstring(node) or "")[0]
            yield from (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))


def sentences(blocks: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of at least three words, with CODE for text in backquotes."""
    for block in blocks:
        plain = re.sub(r"``?[^`]*``?", "CODE", block.replace("**", ""))
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        parts = re.split(r"(?<=[.!?])\s+(?=[A-Z(`\"*])", plain.strip())
        yield from (part for part in parts if len(part.split()) >= 3)


def marks(sentence: str) -> list[str]:
    """The marks of one sentence."""
    checks = {
        "long": len(sentence.split()) > 30,
        "tangled": ";" in sentence or sentence.count(",") >= 3,
        "headless": HEADLESS.search(sentence) is not None,
        "dialect": DIALECT.search(sentence) is not None,
    }
    return [name for name, has_mark in checks.items() if has_mark]


def sentences_of(paths: Iterable[Path]) -> list[str]:
    """The sentences of Markdown pages, and of the docstrings of Python files."""
    collected: list[str] = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        collected += sentences(docstring_blocks(text) if path.suffix == ".py" else page_blocks(text))
    return collected


def shares(collected: list[str]) -> dict[str, float]:
    """The per cent of sentences with each mark."""
    counts = Counter(mark for sentence in collected for mark in marks(sentence))
    return {mark: round(100 * counts[mark] / max(1, len(collected)), 1) for mark in TARGETS}


def share_to_readers(collected: list[str]) -> float:
    """The per cent of sentences that speak to the reader."""
    return round(100 * sum(YOU.search(sentence) is not None for sentence in collected) / max(1, len(collected)), 1)


def texts_of(source: str) -> Iterator[str]:
    """Yield the texts of a module that users may read: its strings without docstrings, with CODE for values."""
    tree = ast.parse(source)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(value) for value in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(value.value) if isinstance(value, ast.Constant) else "CODE" for value in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.replace("%s", "CODE")
        else:
            continue
        if _TEXT.fullmatch(text) and len(text.split()) > 3 and not text.isupper():
            yield text
