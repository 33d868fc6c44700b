"""Pack the built wheel and its libraries into one zip for ``--py-files``: ``build/emr/sbroute.zip``.

EMR does not install packages. A zip on the Python path needs no installation, but it must be pure Python. PyYAML
is pure without its optional C parser. The libraries are the locked ones of the environment that runs this script,
so it downloads no files. sqlglot is for `import`.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Libraries that do without their compiled part.
COMPILED_IS_OPTIONAL = {"pyyaml"}
_COMPILED = {".so", ".pyd", ".dylib"}
_SKIPPED = {"__pycache__", "bin", "Scripts"}
# One time for all entries: equal content gives an equal zip.
_TIME = (1980, 1, 1, 0, 0, 0)


def required(requirements: Iterable[str]) -> list[str]:
    """The names that a list of requirements asks for, without those of extras."""
    names = (re.match(r"[\w.-]+", line) for line in requirements if "extra ==" not in line)
    return [match.group().lower() for match in names if match]


def closure(names: Iterable[str]) -> dict[str, Distribution]:
    """Return the named distributions and all their requirements, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = distribution(name)
            waiting += required(found[name].requires or [])
    return dict(sorted(found.items()))


def files_of(name: str, library: Distribution) -> dict[str, bytes]:
    """The files of a library that a zip may hold, by their path in it. Raises ValueError for compiled code."""
    files = {}
    for file in library.files or []:
        if _SKIPPED & set(file.parts) or ".." in file.parts:
            continue
        if file.suffix in _COMPILED:
            if name not in COMPILED_IS_OPTIONAL:
                raise ValueError(f"{name} holds compiled code ({file}), which does not run from a zip")
            continue
        files[file.as_posix()] = Path(str(file.locate())).read_bytes()
    return files


def pack(wheel: Path, target: Path) -> dict[str, Distribution]:
    """Write the zip, and return the libraries in it."""
    with zipfile.ZipFile(wheel) as built:
        content = {name: built.read(name) for name in built.namelist() if not name.endswith("/")}
    metadata = next(text for name, text in content.items() if name.endswith(".dist-info/METADATA"))
    requirements = HeaderParser().parsestr(metadata.decode()).get_all("Requires-Dist", [])
    libraries = closure([*required(requirements), "sqlglot"])
    for name, library in libraries.items():
        content.update(files_of(name, library))
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(content):
            packed.writestr(zipfile.ZipInfo(name, _TIME), content[name], zipfile.ZIP_DEFLATED)
    return libraries


def main(root: Path = ROOT) -> int:
    """Pack the only wheel in ``dist/`` of a checkout."""
    wheels = sorted((root / "dist").glob("*.whl"))
    if len(wheels) != 1:
        sys.stderr.write(f"package: dist/ holds {len(wheels)} wheels, not one: run make wheel\n")
        return 2
    target = root / "build" / "emr" / "sbroute.zip"
    libraries = pack(wheels[0], target)
    named = ", ".join(f"{name} {library.version}" for name, library in libraries.items())
    sys.stdout.write(f"{target.relative_to(root)}: {wheels[0].name} with {named}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
