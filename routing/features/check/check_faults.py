"""What can be wrong with a check, each phrased once; all of it means exit code 2."""

from __future__ import annotations

from collections.abc import Sequence

from routing.errors import InputError, join_bounded, quote
from routing.importing.import_faults import unreadable_file


def no_queue(paths: Sequence[str]) -> InputError:
    """Return the error that the paths hold no transmission queue."""
    return InputError(
        f"there is no transmission queue in {join_bounded([quote(path) for path in paths], 'path')}",
        "export sys.transmission_queue; sbroute import queries prints the T-SQL for it",
    )


def no_row(rejected: Sequence[str]) -> InputError:
    """Say that every row of the exports was rejected."""
    return InputError(f"no row of the exports can be read, {join_bounded(rejected[:3], 'row', len(rejected))}")


def no_instance(file: str) -> InputError:
    """Return the error that the instance of a script is not known."""
    return InputError(
        f"{quote(file)}: which instance the script is for is not known",
        "give --instance, put it into a folder named like an instance of the exports, or have it begin with"
        " :CONNECT NAME",
    )


class NoScriptError(InputError):
    """A file that holds something else than T-SQL; ``why`` is what is wrong with it."""

    why: str

    @classmethod
    def of_file(cls, file: str, why: str) -> NoScriptError:
        """Say that a file is no script, with the reason."""
        error = cls(f"{quote(file)} is not a script: {why}", "leave it out")
        error.why = why
        return error


def unreadable_script(file: str, error: OSError) -> InputError:
    """Return a script that the system does not let us read."""
    return unreadable_file(file, error.strerror or str(error))


def unknown_message(asked: str) -> InputError:
    """Say that no message waits that has this id, or belongs to this conversation."""
    return InputError(
        f"no message of the transmission queues has the id {quote(asked)}, nor its conversation this id or handle",
        "--format json lists the ids of all",
    )
