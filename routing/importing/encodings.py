"""Choose the encoding of files that are neither marked nor UTF-8: ``--encoding``, or Windows-1252 with a note."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from encodings.aliases import aliases

from routing.errors import InputError, name_nearest, quote
from routing.importing.import_files import as_shown

GUESS = "Windows-1252"
"""The name of the default encoding."""
_CHOSEN: ContextVar[str | None] = ContextVar("encoding", default=None)
# No language of Windows-1252 has so many accents in a row, or capitals in them before a small letter; words of
# other code pages have nothing else, and their small letters may be capitals here.
_FOREIGN_WORD = re.compile(r"[^\x00-\x7f]{4,}|[\u00c0-\u00de]{2}[\u00df-\u00ff]")
# Windows-1254 has six letters of Turkish for those of Icelandic. Only Turkish has them so: in Icelandic a thorn
# begins a syllable, and no other language of Windows-1252 has them in a word with \u00e7 or \u00fc.
_LETTER = r"[^\W\d_]"
_AFTER_THORN = "aeiouy\u00e1\u00e9\u00ed\u00f3\u00fa\u00fd\u00e6\u00f6jrv"
_SIX, _TURKISH_TOO = "\u00de\u00fe\u00d0\u00f0\u00dd\u00fd", "\u00e7\u00fc\u00c7\u00dc"
_TURKISH = re.compile(
    rf"(?<={_LETTER})\u00fe(?=[a-z])(?![{_AFTER_THORN}])|(?<={_LETTER}{{3}})\u00fe(?![a-z{_AFTER_THORN}])"
    rf"|(?<={_LETTER}{{3}})\u00de(?![{_AFTER_THORN}{_AFTER_THORN.upper()}])|(?<!{_LETTER})\u00dd[aeou]"
    rf"|[{_SIX}]{_LETTER}{{0,40}}[{_TURKISH_TOO}]|[{_TURKISH_TOO}]{_LETTER}{{0,40}}[{_SIX}]"
)
# Turkish has these, and Baltic languages do not.
_ONLY_TURKISH = re.compile("[\u00fd\u00dd\u00fc\u00dc]")
# The letters beyond ASCII that languages of Windows-1252 have in one word, and where none of them has a letter:
# \u0153 and \u00f5 are never the last one, \u00ec and \u00f9 always, and \u00f0 is never the first. \u00f1 comes
# before vowels, \u00e7 not before consonants, and \u00e3, \u00e2, \u00ee and \u00fb before few consonants. \u00e3
# is the last one after few of them, \u00eb follows vowels, and \u00e8 comes before no vowel but i. Only Catalan,
# without k and w, has \u00e0 inside a word, and Estonian, without c and y, \u00f5 before another letter than e.
# Turkish and Albanian have \u00e7 before e and i too. Names such as Luned\u00ecMattina have several words.
# German, Nordic, Estonian and Finnish, Icelandic, Dutch; French, Spanish, Catalan, Portuguese, Italian.
_NORTHERN, _SOUTHERN = (
    "äöüßéèàêç åäöæøéèêòóôü äöõüšž áðéíóúýþæö éèêëïöüä",
    "àâæçéèêëîïôœùûüÿ áéíñóúüï àçèéíïòóúü ãáàâçéêíóôõúü àèéìíîòóùú",
)
_ALPHABETS = tuple(map(frozenset, (*_NORTHERN.split(), *_SOUTHERN.split())))
_MISPLACED = re.compile(
    r"\u0153(?![a-z])|\u00f5(?![a-z\u00f5])|[\u00ec\u00f9](?=[a-z])|\u00e3(?=[b-df-hj-nprtv])|\b\u00f0"
    r"|\u00f1(?![aeiou\u00e1\u00e9\u00ed\u00f3\u00fa\u00fc])|\u00e7(?=[bcdf-hk-np-tv-z])|\u00e2(?=[dfjksz])"
    r"|\u00ee(?![clmnt])|\u00fb(?=[abd-ko-qsu-z])"
    r"|\u00e3s(?=[a-z])|(?:(?<=[b-df-hj-np-tv-z]{2})(?<!nh|lh|rm|rf|sl)(?<!rist)|(?<=ur))\u00e3(?![a-z\u00df-\u00ff])"
    r"|(?<=[b-df-hj-np-tv-z])\u00eb|\u00e8(?=[aeou\u00e1\u00e9\u00ed\u00f3\u00fa])"
    r"|\u00e0(?=[a-z]{0,40}[kw])|[kw][a-z]{0,40}\u00e0(?=[a-z])"
    r"|(?:[cqwxy][a-z\u00df-\u00ff]{0,40}\u00f5|\u00f5(?=[a-z\u00df-\u00ff]{0,40}[cqwxy]))(?!e)"
)
_WORD = re.compile(rf"{_LETTER}+")
_NEXT_WORD = re.compile(r"(?<=[a-z\u00df-\u00ff])(?=[A-Z\u00c0-\u00de])")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_SHOWN = 60
_BYTES = range(128, 256)
# A byte that Windows-1252 does not have is kept as half a character.
_GUESSED = frozenset(bytes(_BYTES).decode("cp1252", "ignore")) | {chr(0xDC00 + byte) for byte in _BYTES}


@contextmanager
def reading_as(encoding: str | None) -> Iterator[None]:
    """Read files that are neither marked nor UTF-8 in this encoding, for the block.

    Args:
        encoding: A name that Python knows, None for Windows-1252 with a note.

    Raises:
        InputError: Python knows no text encoding of this name.
    """
    try:
        "a".encode(GUESS if encoding is None else encoding)
    except (LookupError, ValueError):
        near = name_nearest(str(encoding).lower(), {name: name for name in (*aliases, *aliases.values())})
        suggestion = "" if near is None else f", did you mean {near}?"
        hint = "use one of Python's names, such as cp1251, cp850 or shift_jis"
        raise InputError(f"--encoding {quote(encoding)} is not an encoding{suggestion}", hint) from None
    token = _CHOSEN.set(encoding)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def chosen_encoding() -> str | None:
    """Return the encoding that the caller sets for files without a known one."""
    return _CHOSEN.get()


def is_plausible(text: str) -> bool:
    """Return True if a name read as Windows-1252 may be right: each word has letters of one language."""
    return not (any(map(_is_foreign, _WORD.findall(text))) or _TURKISH.search(text)) and all(
        _is_latin_letter(letter) for letter in _BEYOND_ASCII.findall(text) if letter in _GUESSED
    )


def _is_foreign(word: str) -> bool:
    """Return True if no language of Windows-1252 has a word with these letters."""
    if word.isascii():
        return False
    letters = {letter for letter in word.lower() if letter in _GUESSED}
    is_of_one = any(letters <= alphabet for alphabet in _ALPHABETS)
    return not is_of_one or bool(
        _FOREIGN_WORD.search(word) or _MISPLACED.search(_NEXT_WORD.sub(" ", word).lower())
    )


def is_guessed(text: str) -> bool:
    """Return True if a text has a character that is a byte beyond ASCII in Windows-1252."""
    return not _GUESSED.isdisjoint(text)


def _is_latin_letter(character: str) -> bool:
    return character.isalpha() and unicodedata.name(character, "").startswith("LATIN")


def without_implausible(text: str) -> str:
    """Return a text with a replacement character for each one that is implausible in names."""
    text = _WORD.sub(
        lambda match: _BEYOND_ASCII.sub("\ufffd", match[0]) if _is_foreign(match[0]) else match[0], text
    )
    if _TURKISH.search(text):
        text = text.translate(dict.fromkeys(map(ord, _SIX), "\ufffd"))
    return _BEYOND_ASCII.sub(lambda match: match[0] if _is_latin_letter(match[0]) else "\ufffd", text)


def option_for(text: str) -> str:
    """Return the option that names another encoding, with the values that the text suggests.

    >>> option_for("Sipari\u00fe"), option_for("M\u00fc\u00feteri")
    ('--encoding cp1254 or cp1257', '--encoding cp1254')
    """
    if _TURKISH.search(text) is None:
        return "--encoding"
    return "--encoding cp1254" if _ONLY_TURKISH.search(text) else "--encoding cp1254 or cp1257"


def say_guess(file: str, text: str) -> str:
    """Return the sentence on a file that was read by the guess, with the first line that it matters to."""
    match = _BEYOND_ASCII.search(text)
    start = 0 if match is None else match.start()
    line = text.count("\n", 0, start) + 1
    before, after = text[max(start - _SHOWN // 2, 0) : start], text[start : start + _SHOWN // 2]
    shown = before.splitlines()[-1:] if not before.endswith("\n") else []
    shown += after.splitlines()[:1]
    why = f"read as {GUESS}, since it is not UTF-8 ({option_for(text)} names another)"
    return f"{file}, line {line}: {why}: {quote(as_shown(''.join(shown)))}"
