"""Make a picture small enough for a notebook: few colours, well compressed, and half as wide if need be."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Bars and words have few; the soft edges of letters have the others.
_COLOURS = 64
_PALETTE, _DEEP, _WITH_ALPHA = 3, 8, 6


def shrink_png(png: bytes, limit: int) -> bytes:
    """Return a picture of Vega's as a PNG of at most ``limit`` bytes, half as wide and high if it takes that."""
    pixels = _read_pixels(png)
    small = _write_palette(pixels)
    if len(small) > limit:
        small = _write_palette(_halve(pixels))
    if len(small) > limit:
        raise ValueError(f"a picture takes {len(small):,} bytes, more than {limit:,}: draw it smaller")
    return small


def _read_pixels(png: bytes) -> Any:
    """Return rows of pixels, each red, green and blue. Vega's are opaque, and each row states differences."""
    chunks: dict[bytes, bytes] = {}
    place = len(SIGNATURE)
    while place < len(png):
        [size], kind = struct.unpack(">I", png[place : place + 4]), png[place + 4 : place + 8]
        chunks[kind] = chunks.get(kind, b"") + png[place + 8 : place + 8 + size]
        place += size + 12
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    rows = numpy.frombuffer(zlib.decompress(chunks[b"IDAT"]), numpy.uint8).reshape(height, -1)
    # The first byte of a row says how it is filtered: 1 for differences to the pixel on the left.
    if form != [_DEEP, _WITH_ALPHA, 0, 0, 0] or set(rows[:, 0].tolist()) != {1}:
        raise ValueError("the picture is no PNG as vl-convert draws it")
    differences = rows[:, 1:].reshape(height, width, 4)
    return numpy.cumsum(differences, axis=1, dtype=numpy.uint8)[..., :3]


def _halve(pixels: Any) -> Any:
    height, width = (size // 2 for size in pixels.shape[:2])
    squares = pixels[: height * 2, : width * 2].reshape(height, 2, width, 2, 3)
    return squares.mean(axis=(1, 3)).astype(numpy.uint8)


def _write_palette(pixels: Any) -> bytes:
    """Return the pixels as a PNG of the commonest colours, each other colour replaced by the nearest of them."""
    height, width = pixels.shape[:2]
    colours, places, counts = numpy.unique(
        pixels.reshape(-1, 3).astype(numpy.int32), axis=0, return_inverse=True, return_counts=True
    )
    commonest = colours[numpy.argsort(-counts, kind="stable")[:_COLOURS]]
    distances = ((colours[:, None] - commonest[None]) ** 2).sum(axis=2)
    numbers = distances.argmin(axis=1).astype(numpy.uint8)[places].reshape(height, width)
    rows = numpy.hstack([numpy.zeros((height, 1), numpy.uint8), numbers])
    header = struct.pack(">IIBBBBB", width, height, _DEEP, _PALETTE, 0, 0, 0)
    palette = commonest.astype(numpy.uint8).tobytes()
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
