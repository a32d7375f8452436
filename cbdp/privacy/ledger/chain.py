"""The entries of a ledger: each names the hash of the one before, and each is checked against all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.errors import CbdpError, InputError
from cbdp.privacy.ledger.amounts import ATTO, Amount, Charge, Finished, Spending
from cbdp.privacy.ledger.owner import Owner

GENESIS = "0" * 64  # what the first entry names as its predecessor
RESTORE = "restore a copy that you trust"

Row = tuple[int, str, str, str]  # sequence, hash of the entry before, entry as JSON, hash

_CAPS = {"ledger": str, "cap_nano": int, "cap_atto": int}
_CHARGE = {"charge": str, "request": str, "nano": int, "atto": int, "what": str}
_FORMS: dict[str, tuple[dict[str, type], ...]] = {  # the fields that an event may have
    "opened": (_CAPS | {"dataset": str}, _CAPS | {"riders": str}),
    "reserved": (_CHARGE | {"dataset": str}, _CHARGE),  # older ledgers, each of one data set, do not name it
    "released": ({"charge": str, "sha256": str, "path": str},),
    "abandoned": ({"charge": str, "note": str},),  # read in older ledgers; no longer written
}
_UNITS = {"cap_nano", "cap_atto", "nano", "atto"}


class LedgerError(CbdpError):
    """The ledger was changed or damaged. The message names the first broken entry."""


@dataclass(frozen=True)
class Entry:
    """One event as the file holds it."""

    sequence: int
    event: str
    fields: Mapping[str, Any]
    previous: str
    hash: str

    @property
    def amount(self) -> Amount:
        """The cap that `opened` sets, or the charge that `reserved` makes; nothing for other events."""
        if self.event == "opened":
            return Amount(self.fields["cap_nano"], self.fields["cap_atto"])
        return Amount(self.fields.get("nano", 0), self.fields.get("atto", 0))

    @property
    def shown(self) -> dict[str, str]:
        """The fields for people, with the amount in decimals.

        >>> fields = {"charge": "ab", "request": "r", "nano": 250_000_000, "atto": 0, "what": "laplace"}
        >>> Entry(2, "reserved", fields, "", "").shown
        {'ε': '0.25', 'charge': 'ab', 'request': 'r', 'what': 'laplace'}
        """
        texts = {name: str(value) for name, value in self.fields.items() if name not in _UNITS}
        label = {"opened": "cap", "reserved": "ε"}.get(self.event)
        return {label: str(self.amount), **texts} if label else texts


@dataclass
class Book:
    """The sum of a ledger's entries, each checked as it is posted."""

    path: Path
    sequence: int = 0
    head: str = GENESIS
    heads: set[str] = field(default_factory=set)
    id: str = ""  # drawn at random when the ledger was created
    owner: Owner = field(default_factory=lambda: Owner(""))
    cap: Amount = field(default_factory=Amount)
    spent: Amount = field(default_factory=Amount)
    charges: dict[str, Charge] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)  # charges that end here, and how they ended

    @property
    def left(self) -> Amount:
        return self.cap - self.spent

    def spending(self) -> dict[str, Spending]:
        """What each data set has spent, in the order of their first charges."""
        found: dict[str, Spending] = {}
        for charge in self.charges.values():
            before = found.get(charge.dataset, Spending())
            found[charge.dataset] = before.with_charge(charge.amount, published=charge.id in self.finished)
        return found

    def following(self, event: str, **fields: str | int) -> Row:
        """The row that would continue the chain. It is posted when it was read back from the file."""
        text = _canonical({"sequence": self.sequence + 1, "event": event, **fields})
        return self.sequence + 1, self.head, text, _hash(self.head, text)

    def post(self, row: Row) -> None:
        """Check an entry against all before it, then take it in."""
        sequence, previous, text, digest = row
        expected = self.sequence + 1
        if sequence != expected:
            raise broken(self.path, expected, f"it is missing (the next one found is entry {sequence})")
        if previous != self.head:
            raise broken(self.path, sequence, "it does not follow the entry before it")
        if not isinstance(text, str) or digest != _hash(previous, text):
            raise broken(self.path, sequence, "its hash does not match its content")
        entry = parsed(row, self.path)
        if (entry.event == "opened") != (sequence == 1):
            raise broken(self.path, sequence, "a ledger is opened once, by entry 1")
        getattr(self, f"_{entry.event}")(entry)
        self.sequence, self.head = sequence, digest
        self.heads.add(digest)

    def open_charges(self) -> list[Charge]:
        return [charge for charge in self.charges.values() if charge.id not in self.closed]

    def must_be_open(self, charge: Charge) -> None:
        if self.charges.get(charge.id) != charge:
            raise InputError(f"charge {charge.id!r} is not in the ledger {self.path}: reserve it there first")
        if charge.id in self.closed:
            raise InputError(f"charge {charge.id!r} was already {self.closed[charge.id]}: reserve a new one")

    def _opened(self, entry: Entry) -> None:
        cap = entry.amount
        if cap.nano <= 0 or not 0 <= cap.atto < ATTO:
            raise broken(
                self.path, entry.sequence, f"invalid cap {cap}: ε must be positive, δ at least 0 and below 1"
            )
        self.id, self.cap = entry.fields["ledger"], cap
        riders = entry.fields.get("riders")
        self.owner = Owner.of(entry.fields.get("dataset", ""), riders)

    def _reserved(self, entry: Entry) -> None:
        charge, amount = entry.fields["charge"], entry.amount
        total = self.spent + amount
        if amount.nano <= 0 or amount.atto < 0:
            raise broken(
                self.path, entry.sequence, f"invalid charge {amount}: ε must be positive, δ at least 0"
            )
        if charge in self.charges:
            raise broken(self.path, entry.sequence, "its charge was already reserved")
        if not total.within(self.cap):
            raise broken(
                self.path, entry.sequence, f"the charges add up to {total}, more than the cap {self.cap}"
            )
        self.spent = total
        self.charges[charge] = Charge(
            charge, entry.fields["request"], amount, entry.fields["what"], entry.hash, self._charged(entry)
        )

    def _charged(self, entry: Entry) -> str:
        """The data set that a charge is for."""
        named = entry.fields.get("dataset")
        if self.owner.riders:
            if not named:
                raise broken(self.path, entry.sequence, f"a charge to {self.owner} must name its data set")
            return str(named)
        if named not in (None, self.owner.name):
            raise broken(
                self.path, entry.sequence, f"it charges data set {named!r}, and the ledger is of {self.owner}"
            )
        return self.owner.name

    def _released(self, entry: Entry) -> None:
        charge = self._ending(entry)
        self.finished[charge.id] = Finished(charge, entry.fields["sha256"], entry.fields["path"])
        self.closed[charge.id] = f"released to {entry.fields['path']!r}"

    def _abandoned(self, entry: Entry) -> None:
        self.closed[self._ending(entry).id] = "abandoned"

    def _ending(self, entry: Entry) -> Charge:
        charge = self.charges.get(entry.fields["charge"])
        if charge is None:
            raise broken(self.path, entry.sequence, "its charge was never reserved")
        if charge.id in self.closed:
            raise broken(self.path, entry.sequence, f"its charge was already {self.closed[charge.id]}")
        return charge


def broken(path: Path, sequence: int, why: str) -> LedgerError:
    return LedgerError(f"entry {sequence} of the ledger {path} is broken: {why}; {RESTORE}")


def parsed(row: Row, path: Path) -> Entry:
    """The entry of a row, if it is one: canonical JSON with exactly the fields of its event."""
    sequence, previous, text, digest = row
    try:
        fields = json.loads(text)
        event = fields.pop("event")
        sound = (
            fields.pop("sequence") == sequence
            and {name: type(value) for name, value in fields.items()} in _FORMS[event]
            and _canonical({"sequence": sequence, "event": event, **fields}) == text
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise broken(path, sequence, "it is not an entry that a ledger writes")
    return Entry(sequence, event, fields, previous, digest)


def _canonical(fields: Mapping[str, str | int]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _hash(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}{text}".encode("utf-8", "surrogateescape")).hexdigest()
