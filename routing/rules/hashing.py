"""Rule book, section 6: the dialog-ID hash, xxhash64 of the lower-case conversation id with seed 42."""

from __future__ import annotations

from struct import Struct

from routing.rules.text import fold

_SEED = 42
_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_STRIPE = Struct("<4Q")


def dialog_id_hash(conversation_id: str) -> int:
    """Return the hash of a conversation id: a signed 64-bit integer."""
    hashed = xxhash64(fold(conversation_id).encode("utf-8"), _SEED)
    return hashed - (1 << 64) if hashed >> 63 else hashed


def xxhash64(data: bytes, seed: int) -> int:
    """Compute XXH64 of some bytes, unsigned, as its published specification defines it."""
    whole = len(data) // _STRIPE.size * _STRIPE.size
    total = _stripes(data[:whole], seed) if whole else seed + _P5
    return _avalanche(_tail((total + len(data)) & _MASK, data[whole:]))


def _stripes(data: bytes, seed: int) -> int:
    """Fold the whole stripes of four words each. The loop is unrolled for speed."""
    a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
    for word_a, word_b, word_c, word_d in _STRIPE.iter_unpack(data):
        # Mask the bits above 64 before a rotation can bring them back.
        a, b = (a + word_a * _P2) & _MASK, (b + word_b * _P2) & _MASK
        c, d = (c + word_c * _P2) & _MASK, (d + word_d * _P2) & _MASK
        a, b = ((a << 31) | (a >> 33)) * _P1 & _MASK, ((b << 31) | (b >> 33)) * _P1 & _MASK
        c, d = ((c << 31) | (c >> 33)) * _P1 & _MASK, ((d << 31) | (d >> 33)) * _P1 & _MASK
    total = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
    for lane in (a, b, c, d):
        lane = lane * _P2 & _MASK
        total = ((total ^ (((lane << 31) | (lane >> 33)) * _P1 & _MASK)) * _P1 + _P4) & _MASK
    return total


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(lane: int, word: int) -> int:
    return (_rotate((lane + word * _P2) & _MASK, 31) * _P1) & _MASK


def _tail(total: int, remaining: bytes) -> int:
    """Fold the bytes after the last whole stripe: eights, then a four, then ones."""
    while len(remaining) >= 8:
        total ^= _round(0, int.from_bytes(remaining[:8], "little"))
        total, remaining = (_rotate(total, 27) * _P1 + _P4) & _MASK, remaining[8:]
    if len(remaining) >= 4:
        total ^= (int.from_bytes(remaining[:4], "little") * _P1) & _MASK
        total, remaining = (_rotate(total, 23) * _P2 + _P3) & _MASK, remaining[4:]
    for byte in remaining:
        total = (_rotate(total ^ (byte * _P5 & _MASK), 11) * _P1) & _MASK
    return total


def _avalanche(total: int) -> int:
    total = ((total ^ (total >> 33)) * _P2) & _MASK
    total = ((total ^ (total >> 29)) * _P3) & _MASK
    return total ^ (total >> 32)
