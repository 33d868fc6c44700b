"""What a configuration is compared with, and when: checked before a table is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from routing.config import Config
from routing.errors import ContractError, EnvironmentFault, name_nearest, quote
from routing.features.diff.comparing import WORSE
from routing.schemas import SETTINGS
from routing.tables.table_columns import Table

if TYPE_CHECKING:
    from routing.importing.tsql import ReadScript

# What stands in the place of a file's name.
_WITHOUT_FILE = "the script"


@dataclass(frozen=True)
class TableVersions:
    """Compare with older versions of tables, which are then the side before.

    Args:
        by_key: Delta versions by configuration key.

    Example:
        >>> config = routing.load_config("job.yaml")
        >>> routing.diff(config, routing.TableVersions({"routes": 0})).changed
        0
    """

    by_key: Mapping[str, int]


@dataclass(frozen=True)
class Scripts:
    """Compare with T-SQL scripts in force on an instance from the time of the decision.

    Args:
        files: paths of scripts, which are read in this order.
        instance: the instance that they are for.
        database: the database in use until a script says USE.
        variables: values of sqlcmd's variables by name.
        text: one script that lies in no file, read after the files.

    Example:
        >>> scripts = routing.Scripts.of_text("DROP ROUTE Far", "hub", "Sales")
        >>> scripts.instance, scripts.database, scripts.text
        ('hub', 'Sales', 'DROP ROUTE Far')
    """

    files: Sequence[str]
    instance: str
    database: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None

    @classmethod
    def of_text(cls, text: str, instance: str, database: str | None = None) -> Scripts:
        """Return a script that is written down where it is tried."""
        return cls((), instance, database, text=text)

    def read(self, at: datetime) -> list[ReadScript]:
        """Return the scripts, as of an aware time.

        Raises InputError for a file that cannot be read, or is no script.
        """
        if find_spec("sqlglot") is None:
            raise EnvironmentFault.no_package("sqlglot", "import")
        from routing.importing.scripts import read_scripts, read_text

        scripts = read_scripts(
            self.files,
            instance=self.instance,
            database=self.database,
            scripted_at=at,
            variables=self.variables,
        )
        if self.text is None:
            return scripts
        text_script = read_text(
            self.text,
            file=_WITHOUT_FILE,
            instance=self.instance,
            database=self.database,
            scripted_at=at,
            variables=self.variables,
        )
        return [*scripts, text_script]


Against = Config | Mapping[str, Table] | TableVersions | datetime | Scripts
"""Another configuration or its tables, older versions, another time of the same tables, or scripts."""


def versions_of(texts: Sequence[str]) -> TableVersions:
    """Parse ``--against-version``: N of the table routes, or KEY=N. Raises ContractError."""
    versions: dict[str, int] = {}
    for text in texts:
        key, equals, number = text.rpartition("=")
        key = key if equals else "routes"
        if key not in SETTINGS:
            near = name_nearest(key, {name: name for name in SETTINGS})
            raise ContractError(
                f"--against-version: {quote(key)} is no table of which a version can be compared",
                f"did you mean {near}?" if near else f"known are {', '.join(SETTINGS)}",
            )
        if not (number.isascii() and number.isdecimal()) or len(number) > 18:
            raise ContractError(f"--against-version takes N or KEY=N with a version's number, not {quote(text)}")
        if key in versions:
            raise ContractError(f"--against-version gives a version of {key} twice", "give one of each table")
        versions[key] = int(number)
    return TableVersions(versions)


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse ``--fail-on``: words of `comparing.WORSE`, one or several with commas. Raises ContractError.

    Raises ContractError.
    """
    words = [word.strip() for text in texts for word in text.split(",")]
    for word in words:
        if word not in WORSE:
            near = name_nearest(word, {name: name for name in WORSE})
            hint = f"did you mean {near}?" if near else f"known are {', '.join(WORSE)}"
            raise ContractError(f"--fail-on: unknown word {quote(word)}", hint)
    return tuple(dict.fromkeys(words))


def labels_of(against: Against, named: str) -> tuple[str, str]:
    """Return labels of the side before and the side after; ``named`` is that of the tables at hand."""
    if isinstance(against, TableVersions):
        versions = ", ".join(f"{key} at version {version}" for key, version in against.by_key.items())
        return f"{named} with {versions}", f"{named} as it is"
    if isinstance(against, Scripts):
        return named, f"{named} with {_names(against)} on {against.instance}"
    if isinstance(against, datetime):
        return named, named
    return named, against.file if isinstance(against, Config) else "the tables given to compare with"


def _names(scripts: Scripts) -> str:
    names = [Path(file).name for file in scripts.files]
    names += [] if scripts.text is None else [_WITHOUT_FILE]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
