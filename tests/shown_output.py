"""Run the commands of the documentation, and update the outputs on its pages.

A block of commands (```sh) runs in a folder with a reader's files: ``conf``, exports, a script, the tables of the
demo, and the reader's own tables in ``conf/mine.yaml``. If a block cannot run, a comment before it gives the
reason: ``<!-- not run: needs a cluster -->``. A page may show the output of a block's last command directly below
it, between ``<!-- output -->`` and ``<!-- end of output -->``. ``<!-- output to WORDS -->`` shows the lines before
the first one that begins with these words. ``python -m tests.shown_output`` renews the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from routing import cli
from routing.demo.build import claim, settings, write_tables
from tests import python_page

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in ROOT.glob("docs/**/*.md") if page.parent.name not in ("errors", "lint")),
    *sorted(ROOT.glob("conf/**/*.md")),
]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?:sh|bash)\n(?P<commands>.*?)```\n"
    r"(?:\n*<!-- output(?: to (?P<until>[^\n]+?))? -->\n```text\n(?P<shown>.*?)```\n<!-- end of output -->\n)?",
    re.DOTALL,
)
# What a reader's configuration adds to that of the examples.
OUTPUTS = ("pending_messages", "route_candidates", "message_paths", "reconciliation")


# A file of Extended Events as SSMS saves it; import counts an event that says nothing of routes.
EVENTS = "<events><event name='broker_conversation' timestamp='2026-01-05T17:00:00Z'/></events>"


@dataclass(frozen=True)
class CommandBlock:
    """A block of commands on a page, with the output that the page shows below it."""

    reason: str | None
    commands: tuple[tuple[str, ...], ...]
    until: str | None
    shown: str | None


def blocks_of(text: str) -> Iterator[CommandBlock]:
    """Return the command blocks of a page, in their order."""
    for match in BLOCK.finditer(text):
        yield CommandBlock(match["reason"], split_commands(match["commands"]), match["until"], match["shown"])


def split_commands(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command of a block. A backslash at the end continues a line."""
    lines = text.replace("\\\n", " ").splitlines()
    return tuple(words for line in lines if (words := tuple(shlex.split(line, comments=True))))


def arguments_of(words: tuple[str, ...]) -> list[str] | None:
    """Return the arguments of ``sbroute``, or None where another program is called."""
    return list(words[1:]) if words and words[0] in ("sbroute", ".venv/bin/sbroute") else None


def build_reader_folder(folder: Path) -> None:
    """Fill a folder with a reader's files, as the module's docstring lists them."""
    shutil.copytree(ROOT / "conf", folder / "conf")
    shutil.copytree(ROOT / "conf" / "examples" / "exports", folder / "exports")
    shutil.copytree(ROOT / "conf" / "examples" / "scripts", folder / "routes")
    shutil.copy(ROOT / "conf" / "examples" / "scripts" / "shop-fix.sql", folder / "change.sql")
    (folder / "xe").mkdir()
    (folder / "xe" / "events.xml").write_text(EVENTS, encoding="utf-8")
    (folder / "conf" / "mine.yaml").write_text(_own_configuration(), encoding="utf-8")
    with within(folder):
        claim(Path("sbroute-demo"))
        write_tables(settings(Path("sbroute-demo"), []), None)
        run_command(["resolve", "--config", "sbroute-demo/demo.yaml", "--quiet"])
        run_command(["import", "catalog", "exports", "--config", "conf/mine.yaml", "--quiet"])
        run_command(["resolve", "--config", "conf/mine.yaml", "--run-id", "night-2026-01-05", "--quiet"])


def _own_configuration() -> str:
    example = yaml.safe_load((ROOT / "conf" / "examples" / "import.yaml").read_text(encoding="utf-8"))
    tables = {key: f"../tables/{key}" for key in example["tables"]}
    return yaml.safe_dump(
        {"tables": tables, "output": {key: f"../out/{key}" for key in (*example["output"], *OUTPUTS)}}
    )


def run_command(arguments: list[str]) -> str:
    """Return the output of ``sbroute``, or raise AssertionError if it fails."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(arguments)
    assert status in (0, 1), f"sbroute {shlex.join(arguments)} ended with {status}: {err.getvalue()}"
    return out.getvalue()


def run_block(block: CommandBlock) -> str:
    """Run the commands of a block in the current folder, and return the output of the last one."""
    printed = ""
    for words in block.commands:
        file = None
        if len(words) > 2 and words[-2] == ">":
            words, file = words[:-2], words[-1]
        arguments = arguments_of(words)
        if arguments is None:
            assert words[0] == "cat", f"{words[0]} is not run: say why above the block"
            printed = "".join(Path(name).read_text(encoding="utf-8") for name in words[1:])
        else:
            printed = run_command(arguments)
        if file is not None:
            Path(file).write_text(printed, encoding="utf-8")
    return printed


def renewed(text: str) -> str:
    """Return a page with the output of its commands, which run in the current folder."""

    def renew(match: re.Match[str]) -> str:
        [block] = blocks_of(match[0])
        if block.reason is not None:
            return match[0]
        printed = run_block(block)
        if block.shown is None:
            return match[0]
        lines = [line.rstrip() for line in printed.splitlines()]
        if block.until is not None:
            ends = [number for number, line in enumerate(lines) if line.lstrip().startswith(block.until)]
            assert ends, f"no line begins with {block.until!r}"
            lines = [*lines[: ends[0]], "…"]
        start, end = (position - match.start() for position in match.span("shown"))
        return match[0][:start] + "".join(f"{line}\n" for line in lines) + match[0][end:]

    return BLOCK.sub(renew, text)


@contextlib.contextmanager
def copied(built: Path) -> Iterator[None]:
    """Go into a fresh copy of a reader's folder."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(built, name, dirs_exist_ok=True)
        with within(Path(name)):
            yield


@contextlib.contextmanager
def within(folder: Path) -> Iterator[None]:
    """Go into a folder, and back."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def write_pages() -> None:
    """Renew the output on every page, and print which pages changed."""
    with tempfile.TemporaryDirectory() as name:
        built = Path(name)
        build_reader_folder(built)
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            with copied(built):
                new = renewed(text)
            new = python_page.renewed(new)
            if new != text:
                page.write_text(new, encoding="utf-8")
                os.write(1, f"{page.relative_to(ROOT)}\n".encode())


if __name__ == "__main__":
    write_pages()
