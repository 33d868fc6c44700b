"""Find the order in which Sqitch's plans and Liquibase's changelogs apply the scripts of a folder."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath
from posixpath import normpath

from routing.importing.import_files import list_files
from routing.importing.other_formats import is_changelog
from routing.importing.tsql.liquibase import is_ours

# Numbers and dotted versions in names sort by their values.


_NUMBERS = re.compile(r"([0-9]+(?:\.[0-9]+)*)")


def natural_key(name: str) -> tuple[object, ...]:
    """Return a key that sorts numbers and dotted versions in texts by their values.

    >>> sorted(["10_x", "2.1_x", "2_x"], key=natural_key)
    ['2_x', '2.1_x', '10_x']
    """
    parts = _NUMBERS.split(name.casefold())
    return tuple(version_key(part) if place % 2 else part for place, part in enumerate(parts))


def version_key(written: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at the end."""
    numbers = [int(number) for number in re.split("[._]", written)]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def within(folder: Path, file: Path) -> PurePosixPath:
    """Return the path of a file in a folder."""
    return PurePosixPath(file.relative_to(folder).as_posix())


# Plans of Sqitch.


PLAN = "sqitch.plan"
_OF_PLANS = ("deploy", "verify")


def _read_plan(text: str) -> list[str]:
    """Return the scripts of a plan in order. That of a change which was reworked later is called NAME@TAG."""
    names, last, tag = list[str](), dict[str, int](), ""
    for line in text.splitlines():
        name = next(iter(line.partition("#")[0].strip().removeprefix("+").split()), "%")
        if name.startswith("@"):
            tag = name
        elif not name.startswith(("%", "-")):
            if name in last:
                names[last[name]] += tag
            last[name] = len(names)
            names.append(name)
    return names


def find_plan(
    folder: Path, paths: Sequence[PurePosixPath]
) -> tuple[dict[PurePosixPath, int], list[PurePosixPath]]:
    """Return the places of scripts in the plans of Sqitch, and the scripts that their plan does not have."""
    places: dict[PurePosixPath, int] = {}
    tops: dict[PurePosixPath, list[PurePosixPath]] = defaultdict(list)
    planned: list[PurePosixPath] = []
    for path in paths:
        above = next((above for above in path.parents if above.name in _OF_PLANS), None)
        if above is not None:
            tops[above.parent].append(path)
    for top, scripts in tops.items():
        # A plan above is of this folder only if it has no scripts of its own beside it.
        above_all = (top, *(above for above in top.parents if above not in tops))
        plan = next((plan for above in above_all if (plan := folder / above / PLAN).is_file()), None)
        if plan is not None:
            names = _read_plan(plan.read_text("utf-8", "replace"))
            places |= {top / "deploy" / f"{name}.sql": len(places) + place for place, name in enumerate(names)}
            planned += scripts
    return places, [path for path in planned if path not in places]


# Changelogs of Liquibase. Comments, and what undoes changes, in XML, JSON and YAML.


_NOT_APPLIED = re.compile(
    r"<!--(?:[^-]|-(?!->))*(?:-->|\Z)|^[ \t]*#.*"
    r"|<rollback\b[^<>]*(?<!/)>(?:[^<]|<(?!/rollback\b))*(?:</rollback|\Z)"
    r"|\"rollback\"\s*:\s*(?:\[[^\]]*(?:\]|\Z)|\{(?:[^{}]|\{[^{}]*\})*\})"
    r"|^([ \t]*)rollback:.*(?:\n\1[ \t-].*)*",
    re.MULTILINE,
)
_ENTRY = re.compile(r"(?=<include|</?changeSet|<property|\b(?:include(?:All)?|changeSet|property)\"?[ \t]*:)")
# A script of a changeset, which may be for other databases than the next one.
_SQL_FILE = re.compile(
    r"<sqlFile\b[^<>]*|\"sqlFile\"\s*:\s*\{[^{}]*"
    r"|^([ \t]*)(?:-[ \t]+)?sqlFile:.*(?:\n\1[ \t].*|\n(?=\n))*",
    re.MULTILINE,
)
# A list without quotes goes on behind a comma, unless a key follows.
_BARE = r"""[^\s"'<>,{}]+(?:,[ \t]*[^\s"'<>,{}:]+(?![^\s"'<>,{}]|[ \t]*:))*"""
_VALUE = rf"""["']?[ \t]*[:=][ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|({_BARE}))"""
_INCLUDED = re.compile(rf"\b(?:file|path){_VALUE}", re.IGNORECASE)
_SELECTOR = re.compile(rf"\b(context(?:Filter)?|labels|dbms|ignore|endDelimiter){_VALUE}")

_DELIMITER = "endDelimiter"
_NO_CONDITIONS = ("ignore", "dbms", _DELIMITER)
_NOWHERE = PurePosixPath("/")
"""Stands for an included file that is not in the folder."""


@dataclass
class Changelogs:
    """The scripts that changelogs include, by their places.

    ``conditions`` has the contexts and labels under which Liquibase runs a script, ``delimiters`` what ends its
    statements. It does not run those that are ``left_out``.
    """

    order: dict[PurePosixPath, int] = field(default_factory=dict)
    conditions: dict[PurePosixPath, str] = field(default_factory=dict)
    delimiters: dict[PurePosixPath, str] = field(default_factory=dict)
    left_out: list[PurePosixPath] = field(default_factory=list)


_Included = tuple[PurePosixPath, Mapping[str, str]]
"""A file or folder that a changelog includes, with the values of what selects it."""


def read_changelogs(folder: Path, scripts: Sequence[PurePosixPath]) -> Changelogs:
    """Read the changelogs of a folder, which include scripts, folders and one another."""
    texts: dict[PurePosixPath, str] = {}
    for file in list_files(folder, []) if scripts and folder.is_dir() else ():
        # The reader of exports names a file that cannot be opened.
        with suppress(OSError):
            if is_changelog(file):
                texts[within(folder, file)] = file.read_text("utf-8", "replace")
    files: dict[PurePosixPath, list[PurePosixPath]] = defaultdict(list)
    for path in sorted([*texts, *scripts], key=str):
        for place in (path, *path.parents):
            files[place].append(path)
    included = {changelog: list(_find_included(changelog, text, files)) for changelog, text in texts.items()}
    inner = {path for entries in included.values() for path, _ in entries}
    done, not_run = Changelogs(), set[PurePosixPath]()
    for top in sorted(texts, key=lambda changelog: (changelog in inner, natural_key(str(changelog)))):
        waiting: list[_Included] = [] if top in done.order else [(top, {})]
        while waiting:
            path, selectors = waiting.pop()
            shown = " ".join(f"{name} {selectors[name]}" for name in selectors if name not in _NO_CONDITIONS)
            is_free = not shown and bool(done.conditions.get(path))
            # Another changeset may run a script that one has left out, or run it without conditions.
            if (path in done.order and not is_free) or (path in texts and path in not_run):
                continue
            if selectors.get("ignore") == "true" or not is_ours(selectors.get("dbms", "")):
                not_run.add(path)
            else:
                done.order.setdefault(path, len(done.order))
                done.conditions[path] = shown
                done.delimiters.setdefault(path, selectors.get(_DELIMITER, ""))
            waiting += reversed([(below, {**selectors, **further}) for below, further in included.get(path, [])])
    done.order = {path: place for path, place in done.order.items() if path not in texts}
    folders = {path.parent for path in done.order}
    not_run.update(path for path in scripts if path.parent in folders and _NOWHERE not in inner)
    done.left_out = [path for path in scripts if path in not_run and path not in done.order]
    return done


def _find_included(
    changelog: PurePosixPath, text: str, files: Mapping[PurePosixPath, list[PurePosixPath]]
) -> Iterator[_Included]:
    """Yield the files that a changelog includes by paths, which may be relative to any folder above it."""
    for entry in _ENTRY.split(_NOT_APPLIED.sub("", text)):
        of_changeset = _read_selectors(_SQL_FILE.sub("", entry))
        # The delimiter of another change.
        of_changeset.pop(_DELIMITER, None)
        edges = chain.from_iterable(match.span() for match in _SQL_FILE.finditer(entry))
        for start, end in pairwise([0, *edges, len(entry)]):
            part = entry[start:end]
            selectors = {**of_changeset, **_read_selectors(part)}
            yield from ((file, selectors) for file in _find_files(changelog, part, files))


def _read_selectors(text: str) -> dict[str, str]:
    return {name: "".join(values) for name, *values in _SELECTOR.findall(text) if any(values)}


def _find_files(
    changelog: PurePosixPath, text: str, files: Mapping[PurePosixPath, list[PurePosixPath]]
) -> Iterator[PurePosixPath]:
    for match in _INCLUDED.finditer(text):
        written = "".join(match.groups("")).replace("\\", "/").removeprefix("classpath:").lstrip("/")
        name = PurePosixPath(written)
        shorter = [name.relative_to(above) for above in name.parents][::-1]
        places = [*(above / name for above in changelog.parents), *shorter] if written else []
        included = next((path for path in map(PurePosixPath, map(normpath, places)) if path in files), _NOWHERE)
        yield from (file for file in files.get(included, [_NOWHERE]) if file != changelog)
