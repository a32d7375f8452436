"""Which trips of a person are kept: those with the least tickets, and a ticket is a keyed hash.

A person's trips inside the universe are numbered j = 1 … N in the order of their types (`flat`); the trip number j has the
ticket SHA-256(key : j : person), and the `most` least are kept, of equal tickets those with the lower j. The choice is a function of the
key and of the person's trips alone: the order of rows, identical rows, partitions and retries cannot change it, and an engine's random
functions have no part in it. docs/explanation/counting.md has the proof.
"""

from __future__ import annotations

import hashlib

from cbdp.privacy.entropy import Entropy

KEY_BYTES = 32


def draw_key(source: Entropy) -> bytes:
    """256 bits for one count. They are never stored, logged or shown."""
    return source.words(KEY_BYTES // 8, 64).tobytes()


def message(
    key: bytes, j: int, person: bytes, *, period: int | None = None, slot: int | None = None
) -> bytes:
    r"""The bytes that are hashed, exactly: the key's 32 bytes, ":", j in decimal digits, ":", the person's bytes.

    Where persons are bounded in periods, j counts the trips of a person in a period, and "/" with the period's number follows it. While one trip
    of each slot is chosen (`apart`), j counts the trips of a person in a slot of a period, and "+" with the slot's number follows.

    The person's bytes are, by what the column holds:
        text            its UTF-8 bytes as stored (no collation, no trimming, no change of case), but "289.0" as "289"; empty text is nobody
        text of a CSV   the same, and numbers by their exact value: whole ones as decimal digits, others as ".", significant digits, "e", exponent
        whole numbers   decimal digits, with "-" in front of negative ones
        real numbers    whole ones as whole numbers (so that 0.0 and -0.0 are one person); others as the engine writes them; NaN is nobody
        anything else   the text that the engine writes for it
    The text is unambiguous: the key has a fixed length and j holds no ":". With persons of up to 19 bytes it is a single block of SHA-256.

    >>> message(b"k" * 32, 12, b"card 7")
    b'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk:12:card 7'
    """
    within = b"" if period is None else b"/%d" % period
    among = b"" if slot is None else b"+%d" % slot
    return b"%b:%d%b%b:%b" % (key, j, within, among, person)


def ticket(key: bytes, j: int, person: bytes, *, period: int | None = None, slot: int | None = None) -> str:
    """The ticket of a person's trip number j: 64 hexadecimal digits in small letters, compared as text. Proof: docs/proofs/bounding.md."""
    return hashlib.sha256(message(key, j, person, period=period, slot=slot)).hexdigest()
