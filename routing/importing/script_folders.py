"""Choose the scripts of a folder that a deployment applies, in the order in which migration tools apply them.

The names of files say it: numbers and versions, undo scripts, and scripts of one environment. Plans and changelogs
give another order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath

from routing.errors import InputError, join_bounded, quote
from routing.groups import group_pairs
from routing.importing.changelogs import PLAN, find_plan, natural_key, read_changelogs, version_key, within
from routing.importing.tsql.vocabulary import VARIABLE, name_of_variable

# The order: natural, by the parts of a path. Tools with an order of their own have ranks before it.


_FLYWAY = re.compile(r"(?P<kind>[VBU])(?P<version>[0-9]+(?:[._][0-9]+)*)__.*|(?P<repeatable>R)__.*", re.IGNORECASE)
_CALLBACK = re.compile(r"(?P<when>before|after)(?:Each)?(?P<what>[A-Z][A-Za-z]*?)(?P<error>Error)?(?:__.*)?")
_APPLYING = frozenset(["Migrate", "MigrateApplied", "Versioned", "Repeatables", "Connect", "DeployStart"])
_DEPLOYMENT = re.compile(
    r"(?:.*[._ -])?(?P<when>pre|post)[._ -]?deploy(?:ment)?(?:[._ -].*)?", re.IGNORECASE | re.DOTALL
)
# RoundhousE and grate run the folders of a database in this order.
_FOLDERS = (
    *("beforemigration", "createdatabase", "alterdatabase", "runaftercreatedatabase", "runbeforeup", "up"),
    *("runfirstafterup", "functions", "views", "sprocs", "triggers", "indexes", "runafterotheranytimescripts"),
    *("permissions", "aftermigration"),
)
_FIRST, _PLAIN, _VERSIONED, _REPEATABLE, _LAST = range(5)
Key = tuple[object, ...]


def _order(path: PurePosixPath, plan: Mapping[PurePosixPath, int], *, has_up: bool) -> Key:
    if path in plan:
        return _PLAIN, (), ((-1, plan[path]),)
    folders = [_folder_key(name, has_up=has_up) for name in path.parts[:-1]]
    flyway, when = _FLYWAY.fullmatch(path.stem), _deployed(path)
    in_folders = (*folders, (len(_FOLDERS), natural_key(path.stem)))
    if when is not None:
        return _FIRST if when == "pre" else _LAST, (), in_folders
    if flyway is None:
        return _PLAIN, (), in_folders
    if flyway["repeatable"]:
        return _REPEATABLE, (), (natural_key(path.stem), *in_folders)
    return _VERSIONED, version_key(flyway["version"]), in_folders


def _folder_key(name: str, *, has_up: bool) -> Key:
    folded = name.casefold()
    rank = _FOLDERS.index(folded) if has_up and folded in _FOLDERS else len(_FOLDERS)
    return rank, natural_key(name)


def _deployed(path: PurePosixPath) -> str | None:
    """Return ``pre`` or ``post`` for a script that runs before or after all others; None for any other."""
    callback = _CALLBACK.fullmatch(path.stem)
    if callback is not None:
        return {"before": "pre", "after": "post"}[callback["when"]]
    deployment = _DEPLOYMENT.fullmatch(path.stem)
    return None if deployment is None else deployment["when"].lower()


# Scripts that undo other scripts.


_UNDO_WORDS = re.compile(
    r"(?i:r(?:ue|\u00fc)ckg(?:ae|\u00e4)ngig|zur(?:ue|\u00fc)ckrollen|deshacer|revertir|desfazer|reverter|wycofa"
    r"|\u043e\u0442\u043a\u0430\u0442|\u56de\u6eda|\u30ed\u30fc\u30eb\u30d0\u30c3\u30af)"
    r"|(?i:roll[ _-]?back|(?:un|d[e\u00e9]s?)instal|undeploy|downgrade|back[ _-]?out)"
    r"|(?<![A-Za-z])(?i:undo|revert|teardown)(?![a-z])|Undo"
)
_UNDO_PART = re.compile(r"(?:.*[._-])?(?:down|undo|revert|backward)", re.IGNORECASE)
_UNDO_ENDING = re.compile(r".*\.(?:down|undo|revert|roll[_-]?back)", re.IGNORECASE)
_UNDO_FOLDERS = re.compile(
    r"[ _-]*(?:down|downs|undo|revert|roll[ _-]?backs?|uninstall)(?:[ _-]?(?:scripts?|sql))?", re.IGNORECASE
)


def is_undo(path: PurePosixPath) -> bool:
    """Return whether the name of a script says that it undoes, rolls back or uninstalls something."""
    flyway, callback = _FLYWAY.fullmatch(path.stem), _CALLBACK.fullmatch(path.stem)
    if flyway is not None and flyway["kind"]:
        return flyway["kind"].upper() == "U" or _UNDO_ENDING.fullmatch(path.stem) is not None
    if callback is not None and (callback["error"] or callback["what"] not in _APPLYING):
        return True
    return _is_named_undo(path.stem) or any(_UNDO_FOLDERS.fullmatch(folder) for folder in path.parts[:-1])


def _is_named_undo(stem: str) -> bool:
    return bool(_UNDO_WORDS.search(stem) or _UNDO_PART.fullmatch(stem))


def _find_undo(paths: Iterable[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Yield the scripts that undo others. Of two migrations with one version, one may be named as undo."""
    of_version: dict[object, list[PurePosixPath]] = defaultdict(list)
    for path in paths:
        flyway = _FLYWAY.fullmatch(path.stem)
        if is_undo(path):
            yield path
        elif flyway is not None and flyway["kind"]:
            of_version[path.parent, version_key(flyway["version"])].append(path)
    for same in of_version.values():
        named = [path for path in same if _is_named_undo(path.stem)]
        yield from named if len(named) < len(same) else ()


_SECTION = re.compile(
    r"^[ \t]*(?:#[ \t]*)?--[ \t-]*(?:(?:(?:\+\w+|rambler)[ \t]+|migrate:|!)(?:(?P<down>downs?)|ups?)\b"
    r"|(?P<undo>//[ \t]*@UNDO\b)|(?:(?P<named>down)|up)(?:[ \t]+migration\b|[ \t\r-]*$))",
    re.IGNORECASE | re.MULTILINE,
)


def without_undo(text: str) -> tuple[str, int | None]:
    """Return a script without the sections that undo it, and the first line of these; lines stay where they are.

    Goose, sql-migrate, dbmate, node-pg-migrate, MyBatis and others write both directions into one file.
    """
    parts: list[str] = []
    start, is_undo_section, first = 0, False, None
    for section in [*_SECTION.finditer(text), None]:
        end = len(text) if section is None else section.start()
        part = text[start:end]
        parts.append("\n" * part.count("\n") if is_undo_section else part)
        if section is None:
            break
        start, is_undo_section = end, any(section.groups())
        if is_undo_section and first is None:
            first = text.count("\n", 0, end) + 1
    return "".join(parts), first


# Tests and samples beside the scripts of a deployment.


_TEST = "test"
_BESIDE = re.compile(
    r"(?:.*[._ -])?(?:unit|integration)?[._ -]?tests|unit[._ -]?test|specs?|samples?|examples?|demos|docs?"
    r"|documentation|tsqlt|fixtures|test[._ -]?data",
    re.IGNORECASE | re.DOTALL,
)

_USED = re.compile(r"^[ \t]*USE[ \t]+(?:\[([^\]\n]+)\]|\"([^\"\n]+)\"|([\w$]+))", re.IGNORECASE | re.MULTILINE)


def find_used(text: str) -> set[str]:
    """Return the databases that a script names in ``USE`` at the beginning of a line."""
    return {"".join(match.groups("")) for match in _USED.finditer(text)}


def _find_beside(
    paths: Sequence[PurePosixPath], environment: str | None, owners: Collection[str]
) -> list[PurePosixPath]:
    """Return the scripts in folders of tests, samples and pages, unless all scripts are in such folders.

    A folder ``test`` beside one of another environment is an environment. Folders of ``owners``, instances
    and databases, are of none.
    """
    common_folder = _count_common_folders(paths)
    names = {
        folder: folder.name.casefold()
        for path in paths
        for folder in path.parents
        if len(folder.parts) > common_folder
    }
    others = {folder.parent for folder, name in names.items() if name != _TEST and _ENVIRONMENTS.fullmatch(name)}
    beside = {
        folder
        for folder, name in names.items()
        if _BESIDE.fullmatch(name) or (name == _TEST != environment and folder.parent not in others)
        if name not in owners
    }
    found = [path for path in paths if beside.intersection(path.parents)]
    return found if len(found) < len(paths) else []


# Scripts that a setting of Flyway leaves out.


_SHOULD_EXECUTE = re.compile(r"^[ \t]*(?:flyway\.)?shouldExecute[ \t]*=(.*)$", re.IGNORECASE | re.MULTILINE)
_CONSTANTS = {"": True, "true": True, "false": False}
_COMPARISON = re.compile(r"([^\s=!&|()]+)\s*([=!])=\s*([^\s=!&|()]+)")


def should_execute(script: Path, variables: Mapping[str, str]) -> bool | str:
    """Return whether Flyway runs a script by the ``.conf`` file beside it, or an expression that is not constant.

    ``variables`` are the values of placeholders. Raises OSError.
    """
    settings = script.with_name(f"{script.name}.conf")
    written = _SHOULD_EXECUTE.findall(settings.read_text("utf-8-sig", "replace")) if settings.is_file() else []
    if not written:
        return True
    values = {name.casefold(): value for name, value in variables.items()}
    expression = VARIABLE.sub(lambda match: values.get(name_of_variable(match).casefold(), match[0]), written[-1])
    compared = _COMPARISON.fullmatch(expression.strip())
    if VARIABLE.search(expression) is None and compared is not None:
        return (compared[1] == compared[3]) == (compared[2] == "=")
    return _CONSTANTS.get(expression.strip().lower(), str(written[-1]).strip())


# Scripts of one environment.


_ENVIRONMENTS = re.compile(
    r"(?:dev|devel|develop|development|test|tst|testing|qa|qas|quality|sit|st|uat|int|integration|acc|acpt|accept"
    r"|acceptance|stag|stage|staging|stg|pre|preprod|pre[_-]?prod|preproduction|ppe|prod|prd|production|live|local"
    r"|localhost|demo|sandbox|sbx|ci|perf|performance|load|dr|training|train|hotfix|release|abn|entw|recette|integ"
    r"|abnahme|entwicklung|produktion|pilot|ont|hml|homolog|homologacao|desenv|desarrollo|pruebas|produccion|producao"
    r"|nonprod|non[_-]?prod|beta|trn|ppd)[a-z]?[0-9]{0,2}",
    re.IGNORECASE,
)
# Alone, other words are also names of schemas and departments, as in Production.Orders.sql.
_UNAMBIGUOUS = re.compile(r"(?:dev|devel|prod|prd|uat|qa|preprod|nonprod|hml|homolog)[0-9]{0,2}", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"[^\w]+|_+")
_IN_CAPITALS = re.compile(
    r"(?<=[A-Za-z0-9])(?:PreProd|NonProd|Dev|Prod|Test|Staging|Uat|UAT|QA)(?![a-z])"
    r"|\b(?:PreProd|NonProd|Dev|Prod|Test|Staging|Uat|UAT|QA)(?=[A-Z][a-z])"
)
_MARK = "env"
_Rest = tuple[PurePosixPath, tuple[str, ...]]


def _fold(environment: str) -> str:
    return "".join(filter(str.isalnum, environment.casefold()))


def _words(name: str) -> list[str]:
    """Return the words of a name, with pre and non as part of the next word."""
    words: list[str] = []
    for word in filter(None, _BETWEEN_WORDS.split(_IN_CAPITALS.sub(r" \g<0> ", name))):
        if words and word.casefold().startswith("prod") and words[-1].casefold() in ("pre", "non"):
            words[-1] += word
        else:
            words.append(word)
    return words


def _rest(parent: PurePosixPath, words: Iterable[str]) -> _Rest:
    """Return what scripts for several environments have in common: a folder, and words that are no numbers."""
    return parent, tuple(word.casefold() for word in words if not word.isdigit())


@dataclass(frozen=True)
class _EnvironmentName:
    """A part of a file's path that may be an environment, and the rest of the path.

    ``is_certain`` if the name needs no sibling to be an environment.
    """

    environment: str
    rest: _Rest
    is_certain: bool = False


def _environment_names(
    path: PurePosixPath, wanted_name: str | None, instances: Collection[str], common_folder: int
) -> Iterator[_EnvironmentName]:
    """Yield every way to read an environment from a file's path.

    Folders have usual names or the wanted one, but not of instances. Words of a file's name may be any name if one
    is wanted. ``common_folder`` counts the folders that have all scripts.
    """
    words = _words(path.stem)
    for place, folder in enumerate(path.parts[:-1]):
        name = _fold(folder)
        if folder.casefold() not in instances and (_ENVIRONMENTS.fullmatch(folder) or name == wanted_name):
            above = PurePosixPath(*path.parts[:place])
            is_certain = place >= common_folder and _UNAMBIGUOUS.fullmatch(name) is not None
            yield _EnvironmentName(name, (above, ("*", "/")), is_certain)
            yield _EnvironmentName(name, _rest(above.joinpath(*path.parts[place + 1 : -1]), words))
    dotted = path.stem.split(".")
    if len(dotted) > 2 and _MARK in map(str.casefold, dotted[1:]):
        # PROD.routes.ENV.sql, routes.ENV.PROD.sql and routes.PROD.ENV.sql are usual.
        at_end = 0 if dotted[-1].casefold() == _MARK else len(dotted) - 1
        usual = [place for place, part in enumerate(dotted) if _ENVIRONMENTS.fullmatch(part)]
        environment = dotted.pop(usual[0] if len(usual) == 1 else at_end)
        yield _EnvironmentName(_fold(environment), _rest(path.parent, dotted), is_certain=True)
        return
    last = dotted[-1] if len(dotted) > 1 else ""
    if "-" in last and any(map(_UNAMBIGUOUS.fullmatch, last.split("-"))):
        yield _EnvironmentName(_fold(last), _rest(path.parent, dotted[:-1]), is_certain=True)
        return
    for place, word in enumerate(words):
        name, rest = _fold(word), _rest(path.parent, (*words[:place], *words[place + 1 :]))
        if wanted_name is None and not _ENVIRONMENTS.fullmatch(name):
            continue
        is_at_end = not _rest(path.parent, words[:place])[1] or place == len(words) - 1
        is_plain = is_at_end and _UNAMBIGUOUS.fullmatch(name) is not None
        is_last = _fold(last) == name and bool(_ENVIRONMENTS.fullmatch(name))
        yield _EnvironmentName(name, rest, bool(rest[1]) and (is_plain or is_last))


def _find_environments(
    paths: Sequence[PurePosixPath], wanted_name: str | None, instances: Collection[str]
) -> dict[PurePosixPath, str]:
    """Return the scripts of single environments with their environment.

    A script has an environment if its name is certain, or if there are siblings with other names or without one.
    Siblings of a script for the wanted environment always belong to other environments.
    """
    common_folder = _count_common_folders(paths)
    named_paths = [
        (path, name) for path in paths for name in _environment_names(path, wanted_name, instances, common_folder)
    ]
    wanted_scripts = {name.rest for _, name in named_paths if name.environment == wanted_name}
    existing = {_rest(path.parent, _words(path.stem)) for path in paths}
    # What runs before and after something else is for every environment.
    posts = {(above, tuple(w for w in words if w != "post")) for above, words in existing if "post" in words}
    environment_of: dict[PurePosixPath, str] = {}
    siblings: dict[_Rest, dict[PurePosixPath, str]] = defaultdict(dict)
    for path, name in named_paths:
        if name.environment == "pre" and name.rest in posts:
            continue
        is_usual = _ENVIRONMENTS.fullmatch(name.environment) is not None
        if name.is_certain or name.rest in wanted_scripts or (is_usual and name.rest in existing):
            environment_of.setdefault(path, name.environment)
        if is_usual:
            siblings[name.rest][path] = name.environment
    for (_, words), environments in siblings.items():
        is_doubtful = not words and not any(map(_UNAMBIGUOUS.fullmatch, environments.values()))
        if len(set(environments.values())) > 1 and not is_doubtful:
            for path, environment in environments.items():
                environment_of.setdefault(path, environment)
    return environment_of


def _count_common_folders(paths: Sequence[PurePosixPath]) -> int:
    levels = zip(*(path.parts[:-1] for path in paths), strict=False)
    return len(list(takewhile(lambda names: len(set(names)) == 1, levels)))


def arrange(
    folder: Path,
    files: Sequence[Path],
    environment: str | None,
    notes: list[str],
    environments: set[str],
    instances: Collection[str] = (),
    included: Collection[Path] = (),
    databases: Collection[str] = (),
    delimiters: dict[Path, str] | None = None,
) -> list[Path]:
    """Return the scripts of a folder to apply, in order. ``notes`` gets the skipped ones with the reason.

    Only scripts for ``environment`` are applied. ``environments`` gets all environments of the folder. Folders
    with the names of ``instances`` are not of environments. Scripts that others ``included`` are siblings too.
    Folders with the names of ``databases`` hold no tests or samples. ``delimiters`` gets what ends the statements
    of a script if a changelog says it.
    """
    paths = {within(folder, file): file for file in files}
    known_instances = {name.casefold() for name in instances}
    folded_name = None if environment is None else _fold(environment)
    remaining = list(paths)

    def leave_out(which: str, left_out: Collection[PurePosixPath]) -> None:
        nonlocal remaining
        if left_out:
            notes.append(f"skipped, {which}: {_names(paths, left_out)}")
            removed = set(left_out)
            remaining = [path for path in remaining if path not in removed]

    plan, unplanned = find_plan(folder, remaining)
    leave_out(f"since {PLAN} does not have them", unplanned)
    changelogs = read_changelogs(folder, remaining)
    plan |= changelogs.order
    leave_out("since no changelog includes them for SQL Server (name them to apply them)", changelogs.left_out)
    undo = [path for path in _find_undo(remaining) if path not in plan]
    leave_out("since they undo other scripts (name them to apply them)", undo)
    known_names = {*known_instances, *map(str.casefold, databases)}
    beside = [path for path in _find_beside(remaining, folded_name, known_names) if path not in plan]
    leave_out("tests and samples beside other scripts (name them to apply them)", beside)
    siblings = [*remaining, *(within(folder, file) for file in included)]
    of_environments = _find_environments(siblings, folded_name, known_instances)
    environments.update(of_environments.values())
    other_environments = [path for path in remaining if of_environments.get(path, folded_name) != folded_name]
    names = ", ".join(sorted({of_environments[path].upper() for path in other_environments}))
    leave_out(f"scripts for environments (--environment applies one of {names})", other_environments)
    leave_out("since a baseline replaces them", list(_replaced_by_baseline(remaining)))
    perhaps = group_pairs((why, path) for path, why in changelogs.conditions.items() if why and path in remaining)
    notes += (
        f"applied, though Liquibase runs them only with {why}: {_names(paths, those)}"
        for why, those in perhaps.items()
    )
    if delimiters is not None:
        delimiters.update((paths[path], sign) for path, sign in changelogs.delimiters.items() if path in remaining)
    has_up = any("up" in map(str.casefold, path.parts[:-1]) for path in remaining)
    return [paths[path] for path in sorted(remaining, key=lambda path: _order(path, plan, has_up=has_up))]


def _replaced_by_baseline(paths: Sequence[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Yield the migrations up to the newest baseline of their folder, which a new database does not get."""
    versions: dict[PurePosixPath, list[tuple[str, tuple[int, ...], PurePosixPath]]] = defaultdict(list)
    for path in paths:
        flyway = _FLYWAY.fullmatch(path.stem)
        if flyway is not None and flyway["kind"]:
            versions[path.parent].append((flyway["kind"].upper(), version_key(flyway["version"]), path))
    for of_folder in versions.values():
        newest = max((version for kind, version, _ in of_folder if kind == "B"), default=None)
        for kind, version, path in of_folder:
            if newest is not None and (version < newest or (version == newest and kind == "V")):
                yield path


def _names(paths: dict[PurePosixPath, Path], named_paths: Iterable[PurePosixPath]) -> str:
    in_order = sorted(named_paths, key=lambda path: natural_key(str(path)))
    return join_bounded([str(paths[path]) for path in in_order], "file")


def refuse_unknown(environment: str | None, environments: set[str]) -> None:
    """Raise InputError if no script of a folder belongs to the environment of ``--environment``."""
    if environment is not None and _fold(environment) not in environments:
        shown = ", ".join(sorted(map(str.upper, environments))) or "none"
        raise InputError(
            f"--environment {quote(environment)}: no script in the folders is for it",
            f"environments there: {shown}",
        )
