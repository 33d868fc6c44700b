"""Files → text, or the reason why they hold none."""

from __future__ import annotations

from routing.importing.import_faults import NoTextError, unreadable_file
from routing.importing.reach import FilePlace
from routing.importing.tsql.decoding import DecodedScript, decode
from routing.importing.undecodable import KEEP

_SAMPLE = 100_000
_RARE = 50
# Line ends, tabs, the form feed and the old mark of a file's end stand in texts.
_OTHER_CONTROLS = frozenset(chr(code) for code in (*range(1, 32), 127)) - set("\t\n\r\f\x1a")


def read_text(path: FilePlace) -> str:
    """Read the text of a file, in which undecodable bytes are kept until their row is rejected.

    Raises InputError where it cannot be read, NoTextError where it is not text.
    """
    try:
        decoded = decode(path.read_bytes(), KEEP)
    except OSError as error:
        raise unreadable_file(str(path), error.strerror or "the system says no more") from error
    if not is_text(decoded):
        raise NoTextError.of_file(str(path))
    return decoded.text


def is_text(decoded: DecodedScript) -> bool:
    """Return True if somebody has written this as text: characters that no text has are rare in it.

    bcp writes an empty value as the character 0, so that one may be more frequent.
    """
    sample = decoded.text[:_SAMPLE]
    strange = sum(map(_OTHER_CONTROLS.__contains__, sample))
    return (
        _RARE * strange <= len(sample)
        and 2 * sample.count("\x00") <= len(sample)
        and 2 * decoded.unreadable <= len(decoded.text)
    )
