"""Writing to standard output and standard error, where the other end may be full, closed or gone."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from routing.errors import OutputError


def tell_result(text: str) -> None:
    """Write to standard output, at once and whole.

    A reader that has seen enough and gone (``| head -1``) is no fault: the rest is dropped, and the command ends
    with the status that it has. Raises OutputError where standard output cannot be written.
    """
    if sys.stdout is None:
        raise OutputError.not_printable("it is closed")
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        _drop_the_rest(sys.stdout)
    except OSError as error:
        _drop_the_rest(sys.stdout)
        raise OutputError.not_printable(error.strerror or str(error)) from error


def tell_besides(text: str) -> None:
    """Write to standard error; where that cannot be written there is nowhere left to say so, and work goes on."""
    if sys.stderr is None:
        return
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        _drop_the_rest(sys.stderr)


def _drop_the_rest(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python's exit does not write its buffer once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)
