"""Make the pictures of a terminal on the pages from the commands' output: `make pictures`.

Measured seconds and ids of runs differ each time, so the pictures have fixed values.
"""

from __future__ import annotations

import io
import re
import shlex
import tempfile
from html import unescape
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.shown_output import ROOT, build_reader_folder, copied, run_command

FOLDER = ROOT / "docs" / "images"
WIDTH = 80
PICTURES: dict[str, tuple[str, int]] = {
    "check": ("sbroute check conf/examples/exports conf/examples/scripts/hub.sql", 26),
    "explain": (
        "sbroute explain --config conf/mine.yaml --message-id c0000001-5555-4000-8000-000000000001:I:0:Orders",
        26,
    ),
    "resolve": (
        "sbroute resolve --config sbroute-demo/demo.yaml --as-of 2026-01-05T18:00Z --run-id as-of-18",
        40,
    ),
}
"""What each shows: a command, and how many of its first lines."""
# What differs, and what is drawn instead: as long, so that lines break where they do.
_MEASURED = [
    (re.compile(r"([a-z]\s+)\d\.\d\b"), r"\g<1>0.1"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "5c1d3f0e-8b1f-4a63-9d55-0f6a2e7c4b19"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "2026-01-05T23:00:00Z"),
]
_FACES = re.compile(r"\n    @font-face \{\{.*?\n    \}\}", re.DOTALL)
_FIRST_LINE, _LINE_HEIGHT = 20, 24.4
_TEXT = re.compile(r'<text class="[^"]*-r\d+" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>(.*?)</text>')


def print_lines(name: str, *, is_coloured: bool) -> list[str]:
    """Return the shown part of the output of a picture's command, in a reader's folder."""
    command, most = PICTURES[name]
    colour = "always" if is_coloured else "never"
    printed = run_command([*shlex.split(command)[1:], "--width", str(WIDTH), "--color", colour, "--quiet"])
    for measured, instead in _MEASURED if name == "resolve" else ():
        printed = measured.sub(instead, printed)
    return "\n".join(printed.split("\n")[:most]).rstrip("\n").split("\n")


def draw_picture(name: str) -> str:
    """Return the picture of a command as SVG, which loads nothing."""
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.from_ansi("\n".join(print_lines(name, is_coloured=True))), soft_wrap=True)
    form = _FACES.sub("", CONSOLE_SVG_FORMAT).replace(
        "Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace"
    )
    svg = console.export_svg(
        title=f"sbroute {name}", theme=MONOKAI, code_format=form, unique_id=f"terminal-{name}"
    )
    return "\n".join(line.rstrip() for line in svg.rstrip("\n").split("\n")) + "\n"


def read_picture(svg: str) -> list[str]:
    """Return the lines of text that a picture shows."""
    lines: dict[int, str] = {}
    for x, y, length, escaped in _TEXT.findall(svg):
        text = unescape(escaped).replace("\xa0", " ")
        # All characters are as wide as each other, and all lines as high.
        line, column = round((float(y) - _FIRST_LINE) / _LINE_HEIGHT), round(float(x) * len(text) / float(length))
        lines[line] = lines.get(line, "").ljust(column) + text
    return [lines.get(line, "").rstrip() for line in range(max(lines) + 1)]


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        build_reader_folder(Path(folder))
        for name in PICTURES:
            with copied(Path(folder)):
                svg = draw_picture(name)
            file = FOLDER / f"{name}.svg"
            file.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
