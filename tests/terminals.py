"""Terminals for commands in tests: a pseudo-terminal, and the text that a user would see on it."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from typing import Any

from tests.signalled import ROOT

_KNOWN = re.compile(r"\x1b\[(\d*)([A-Za-z])|\r|\n|[^\x00-\x1f]")


def open_terminal(columns: int = 80) -> tuple[int, int]:
    """Both ends of a pseudo-terminal: that of the screen, and that of the program."""
    screen, program = os.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return screen, program


def start_on(program: int, arguments: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
    """Python with these arguments, its streams on a terminal unless they are given."""
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    environment |= {"TERM": "xterm", "PYTHONPATH": str(ROOT), **streams.pop("environment", {})}
    options = {"stdin": subprocess.DEVNULL, "stdout": program, "stderr": program, **streams}
    return subprocess.Popen([sys.executable, *arguments], env=environment, start_new_session=True, **options)


def read_all(screen: int) -> str:
    """Return the output to a terminal until all writers have closed it."""
    parts = []
    try:
        while part := os.read(screen, 65536):
            parts.append(part)
    # How Linux says that it was the last one.
    except OSError:
        pass
    finally:
        os.close(screen)
    return b"".join(parts).decode()


def see(written: str, columns: int = 80) -> list[str]:
    """Return the lines of a screen with this output, and ``|`` at the cursor.

    Output may only move, hide or colour text as a transient line does. Lines longer than the screen are refused.
    """
    lines, row, column = [""], 0, 0
    for part in re.finditer(r"(?s).", _KNOWN.sub("", written)):
        raise AssertionError(f"{part.group()!r} in {written!r}")
    for part in _KNOWN.finditer(written):
        number, letter = part.group(1), part.group(2)
        if part.group() == "\r":
            column = 0
        elif part.group() == "\n":
            row += 1
            lines += [""] if row == len(lines) else []
        elif letter == "K":
            assert number == "2"
            lines[row] = ""
        elif letter == "A":
            row -= int(number)
        elif letter is None:
            lines[row] = lines[row].ljust(column)[:column] + part.group() + lines[row][column + 1 :]
            column += 1
            assert column <= columns, written
        else:
            assert letter == "m", part.group()
    # Below the cursor a line that was taken away has left nothing.
    assert not any(lines[row + 1 :]), lines
    del lines[row + 1 :]
    lines[row] = lines[row].ljust(column)[:column] + "|" + lines[row][column:]
    return lines
