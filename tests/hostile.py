"""Hostile names with quotes, markup, control characters and any Unicode."""

from __future__ import annotations

from hypothesis import strategies as st

QUOTES = """it's "all" `here`; --'"` $(x) ${y} {{z}} %s %n \\ \\' /* */ ]] [a].[b]"""
MARKUP = "[red]a[/red] [link=x] <b>b</b> &amp; <![CDATA[c]]> <script> :smile:"
CONTROL = "a\nb\r\nc\td\x00e\x1b[31mf\x1b]0;title\x07\x7f\x9b31mg\x85\u2028\u2029"
RIGHT_TO_LEFT = "\u202eabc\u202c \u2067\u05e9\u05dc\u05d5\u05dd\u2069 \u200f\u200b\ufeff"
LONG = "\U0001f600\u00e9\u5b57\u00df" * 64
TURKISH = "I\u0131\u0130i"
SHARP = "stra\u00dfe \ufb01 \u017f \u212a"
NAMES = [
    QUOTES,
    MARKUP,
    CONTROL,
    RIGHT_TO_LEFT,
    LONG,
    TURKISH,
    # What other collations, or folding, take for the one before.
    TURKISH.lower(),
    SHARP,
    "STRASSE FI S K",
    # The same letter, composed and not.
    "Caf\u00e9",
    "Cafe\u0301",
    "  blanks  ",
    "null",
    "NaN",
    "*",
    "a.b.c",
    "-1",
    "C:\\x\\..\\y",
]

# Bytes that are no UTF-8, and as they are shown.
UNDECODABLE = [
    (b"\x81", r"\x81"),
    (b"caf\xe9", r"caf\xe9"),
    (b"\xe2\x82", r"\xe2\x82"),
    (b"\xe2\x82x", r"\xe2\x82x"),
    (b"\xed\xa0\x80", r"\xed\xa0\x80"),
    (b"\xc0\xafa", r"\xc0\xafa"),
    (b"\xf5\x80\x80\x80", r"\xf5\x80\x80\x80"),
    (b"\xf0\x9f\x98", r"\xf0\x9f\x98"),
    ("\u00e9\U0001f600".encode() + b"\xff\n\x00", "\u00e9\U0001f600\\xff\n\x00"),
]

# What a Spark string may hold: any Unicode but lone surrogates.
TEXTS = st.text(st.characters(codec="utf-8"), max_size=256) | st.sampled_from(NAMES)
