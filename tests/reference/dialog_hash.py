"""The dialog-ID hash in plain Python integers (rule book, 6)."""

from __future__ import annotations

from functools import lru_cache

SEED = 42
_MASK = (1 << 64) - 1
_P1 = 0x9E3779B185EBCA87
_P2 = 0xC2B2AE3D27D4EB4F
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _stripes(data: bytes, seed: int) -> tuple[int, int]:
    """Mix the complete 32-byte stripes, and return the mixed value and their end."""
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    lanes = [lane & _MASK for lane in lanes]
    end = len(data) // 32 * 32
    for start in range(0, end, 32):
        for lane in range(4):
            at = start + 8 * lane
            lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
    mixed = sum(_rotate(value, bits) for value, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        mixed = ((mixed ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return mixed, end


@lru_cache(maxsize=65536)
def xxhash64(text: str, seed: int = SEED) -> int:
    """Hash the UTF-8 bytes of a text with XXH64, as a signed 64-bit integer."""
    data = text.encode("utf-8")
    value, at = _stripes(data, seed) if len(data) >= 32 else (seed + _P5, 0)
    value = (value + len(data)) & _MASK
    while at + 8 <= len(data):
        value ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        value = (_rotate(value, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        value ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        value = (_rotate(value, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value ^= byte * _P5 & _MASK
        value = _rotate(value, 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    value ^= value >> 32
    return value - (1 << 64) if value >> 63 else value


def picked(broker_ids: list[str], conversation_id: str) -> str:
    """Pick the id of a dialog among distinct ids sorted as text (step 3)."""
    # Like pmod in Spark, Python's remainder of a positive divisor is never negative.
    return broker_ids[xxhash64(conversation_id) % len(broker_ids)]
