"""The entries of a ledger: each names the hash of the one before, and each is checked against all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbdp.errors import BudgetError, CbdpError, InputError
from cbdp.ledger import windows
from cbdp.ledger.charges import (
    ATTO_UNITS,
    PART_FIELDS,
    SCOPE_FIELDS,
    SYMBOLS,
    AccountOwner,
    Amount,
    Charge,
    ChargeScope,
    FinishedCharge,
    SeriesPart,
    TotalSpent,
)
from cbdp.ledger.windows import Caps, WindowSums, check_windows

GENESIS_HASH = "0" * 64  # what the first entry names as its predecessor
RESTORE_ADVICE = "restore a copy that you trust"

Row = tuple[int, str, str, str]  # sequence, hash of the entry before, entry as JSON, hash

_CAP_FORM = {"ledger": str, "cap_atto": int}
_CHARGE_FORM = {"charge": str, "request": str, "nano": int, "atto": int, "what": str}
_EVENT_FORMS: dict[str, tuple[dict[str, type], ...]] = {  # the fields that an event may have
    "opened": (_CAP_FORM | {"dataset": str}, _CAP_FORM | {"riders": str}),
    "reserved": (
        _CHARGE_FORM | {"dataset": str},
        _CHARGE_FORM,
    ),  # older ledgers, each of one data set, do not name it
    "released": ({"charge": str, "sha256": str, "path": str},),
    "abandoned": ({"charge": str, "note": str},),  # read in older ledgers; no longer written
}
_WINDOW_CAP_FORM = dict.fromkeys(windows.CAP_FIELDS, int)
_OPTIONAL_FIELDS: dict[str, Mapping[str, type]] = {  # since format 3: fields that an event may have as well
    "opened": {"cap_nano": int, "currency": str, **_WINDOW_CAP_FORM},
    "reserved": {"currency": str, **SCOPE_FIELDS, **PART_FIELDS},
}
_INTEGER_TEXT_FIELDS = {
    "cap_nano",
    "cap_atto",
    "nano",
    "atto",
    "currency",
    "shape",
    "days",
    *_WINDOW_CAP_FORM,
}


class LedgerError(CbdpError):
    """The ledger was changed or damaged. The message names the first broken entry.

    >>> from cbdp.errors import CbdpError
    >>> issubclass(LedgerError, CbdpError)
    True
    """


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
            return Caps.read(self.fields).total
        currency = self.fields.get("currency", "epsilon")
        return Amount(self.fields.get("nano", 0), self.fields.get("atto", 0), currency)

    @property
    def shown(self) -> dict[str, str]:
        """The fields for people, with the amount in decimals.

        >>> fields = {"charge": "ab", "request": "r", "nano": 250_000_000, "atto": 0, "what": "laplace"}
        >>> Entry(2, "reserved", fields, "", "").shown
        {'ε': '0.25', 'charge': 'ab', 'request': 'r', 'what': 'laplace'}
        """
        texts = {name: str(value) for name, value in self.fields.items() if name not in _INTEGER_TEXT_FIELDS}
        if self.event == "opened":
            return {"cap": str(Caps.read(self.fields)), **texts}
        if self.event == "reserved":
            return {"ε" if self.amount.currency == "epsilon" else "charge of": str(self.amount), **texts}
        return texts


@dataclass
class LedgerState:
    """The sum of a ledger's entries, each checked as it is posted. Proof: docs/proofs/ledger.md."""

    path: Path
    sequence: int = 0
    head: str = GENESIS_HASH
    heads: set[str] = field(default_factory=set)
    id: str = ""  # drawn at random when the ledger was created
    owner: AccountOwner = field(default_factory=lambda: AccountOwner(""))
    caps: Caps = field(default_factory=lambda: Caps(Amount()))
    windows: dict[int, WindowSums] = field(
        default_factory=dict
    )  # days → sums, of the windows that have a cap
    spent: Amount = field(default_factory=Amount)
    charges: dict[str, Charge] = field(default_factory=dict)
    finished: dict[str, FinishedCharge] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)  # charges that end here, and how they ended

    @property
    def cap(self) -> Amount:
        return self.caps.total

    @property
    def left(self) -> Amount:
        return self.cap - self.spent

    def check_admissible(self, charge: Charge) -> None:
        """Whether a charge may be made: `BudgetError` if it exceeds a cap. A privacy filter (Rogers, Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021).

        Window caps are for a person without other trips in the periods that a window cuts. Proof: docs/proofs/composition.md.
        """
        if not charge.amount.within(self.left):
            raise BudgetError(
                f"a charge of {charge.amount} does not fit: {self.left} of the cap {self.cap} is left for {self.owner}; "
                "ask for less (a charge rounds up to 9 decimals)"
            )
        check_windows(self.caps, self.windows, charge)

    def spending(self) -> dict[str, TotalSpent]:
        """What each data set has spent, in the order of their first charges."""
        totals: dict[str, TotalSpent] = {}
        for charge in self.charges.values():
            before = totals.get(charge.dataset, TotalSpent())
            totals[charge.dataset] = before.with_charge(charge.amount, published=charge.id in self.finished)
        return totals

    def following(self, event: str, **fields: str | int | bool) -> Row:
        """The row that would continue the chain. It is posted when it was read back from the file."""
        text = _canonical_json({"sequence": self.sequence + 1, "event": event, **fields})
        return self.sequence + 1, self.head, text, _entry_hash(self.head, text)

    def post(self, row: Row) -> None:
        """Check an entry against all before it, then take it in."""
        sequence, previous, text, digest = row
        expected = self.sequence + 1
        if sequence != expected:
            raise broken_chain(self.path, expected, f"it is missing (the next one found is entry {sequence})")
        if previous != self.head:
            raise broken_chain(self.path, sequence, "it does not follow the entry before it")
        if not isinstance(text, str) or digest != _entry_hash(previous, text):
            raise broken_chain(self.path, sequence, "its hash does not match its content")
        entry = parse_entry(row, self.path)
        if (entry.event == "opened") != (sequence == 1):
            raise broken_chain(self.path, sequence, "a ledger is opened once, by entry 1")
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
        caps = Caps.read(entry.fields)
        cap = caps.total
        if cap.nano <= 0 or not 0 <= cap.atto < ATTO_UNITS or any(nano <= 0 for _, nano in caps.windows):
            raise broken_chain(
                self.path,
                entry.sequence,
                f"invalid cap {caps}: ε must be positive, δ at least 0 and below 1",
            )
        if cap.currency not in SYMBOLS or caps.fields() != _cap_fields(entry, caps):
            raise broken_chain(self.path, entry.sequence, "its caps are not written as a ledger writes them")
        if cap.is_unlimited and not caps.windows:
            raise broken_chain(self.path, entry.sequence, "it sets no cap")
        self.id, self.caps = entry.fields["ledger"], caps
        self.spent = Amount(currency=cap.currency)
        self.windows = {days: WindowSums(days, cap.currency) for days, _ in caps.windows}
        self.owner = AccountOwner.of(entry.fields.get("dataset", ""), entry.fields.get("riders"))

    def _reserved(self, entry: Entry) -> None:
        charge = self._charge_of(entry)
        amount, total = charge.amount, self.spent + charge.amount
        if charge.id in self.charges:
            raise broken_chain(self.path, entry.sequence, "its charge was already reserved")
        if not total.within(self.cap):
            raise broken_chain(
                self.path, entry.sequence, f"the charges add up to {total}, more than the cap {self.cap}"
            )
        try:
            check_windows(self.caps, self.windows, charge)
        except BudgetError as refused:
            raise broken_chain(self.path, entry.sequence, str(refused)) from None
        self.spent = self.spent + amount
        for sums in self.windows.values():
            sums.add(charge)
        self.charges[charge.id] = charge

    def _charge_of(self, entry: Entry) -> Charge:
        amount, fields = entry.amount, entry.fields
        if amount.currency != self.caps.total.currency:
            raise broken_chain(self.path, entry.sequence, "it is not in the currency of the ledger")
        if amount.nano <= 0 or amount.atto < 0:
            symbol = SYMBOLS[amount.currency]
            raise broken_chain(
                self.path, entry.sequence, f"invalid charge {amount}: {symbol} must be positive, δ at least 0"
            )
        try:
            covers, part = ChargeScope.read(fields), SeriesPart.read(fields)
        except (CbdpError, ValueError) as wrong:
            raise broken_chain(
                self.path, entry.sequence, f"it does not say clearly what it covers: {wrong}"
            ) from None
        owner = self._charged(entry)
        return Charge(
            fields["charge"], fields["request"], amount, fields["what"], entry.hash, owner, covers, part
        )

    def _charged(self, entry: Entry) -> str:
        """The data set that a charge is for."""
        named = entry.fields.get("dataset")
        if self.owner.riders:
            if not named:
                raise broken_chain(
                    self.path, entry.sequence, f"a charge to {self.owner} must name its data set"
                )
            return str(named)
        if named not in (None, self.owner.name):
            raise broken_chain(
                self.path, entry.sequence, f"it charges data set {named!r}, and the ledger is of {self.owner}"
            )
        return self.owner.name

    def _released(self, entry: Entry) -> None:
        charge = self._ending(entry)
        self.finished[charge.id] = FinishedCharge(charge, entry.fields["sha256"], entry.fields["path"])
        self.closed[charge.id] = f"released to {entry.fields['path']!r}"

    def _abandoned(self, entry: Entry) -> None:
        self.closed[self._ending(entry).id] = "abandoned"

    def _ending(self, entry: Entry) -> Charge:
        charge = self.charges.get(entry.fields["charge"])
        if charge is None:
            raise broken_chain(self.path, entry.sequence, "its charge was never reserved")
        if charge.id in self.closed:
            raise broken_chain(self.path, entry.sequence, f"its charge was already {self.closed[charge.id]}")
        return charge


def broken_chain(path: Path, sequence: int, why: str) -> LedgerError:
    return LedgerError(f"entry {sequence} of the ledger {path} is broken: {why}; {RESTORE_ADVICE}")


def parse_entry(row: Row, path: Path) -> Entry:
    """The entry of a row, if it is one: canonical JSON with exactly the fields of its event."""
    sequence, previous, text, digest = row
    try:
        fields = json.loads(text)
        event = fields.pop("event")
        sound = (
            fields.pop("sequence") == sequence
            and _has_form(event, {name: type(value) for name, value in fields.items()})
            and _canonical_json({"sequence": sequence, "event": event, **fields}) == text
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise broken_chain(path, sequence, "it is not an entry that a ledger writes")
    return Entry(sequence, event, fields, previous, digest)


def _has_form(event: str, types: Mapping[str, type]) -> bool:
    """Whether these are fields that the event may have: all of one form, and any of the further ones."""
    further = _OPTIONAL_FIELDS.get(event, {})
    if any(types[name] is not kind for name, kind in further.items() if name in types):
        return False
    return {name: kind for name, kind in types.items() if name not in further} in _EVENT_FORMS[event]


def _cap_fields(entry: Entry, caps: Caps) -> dict[str, str | int]:
    """The fields of an opening that state caps."""
    names = ("cap_nano", "cap_atto", "currency", *_WINDOW_CAP_FORM, *caps.fields())
    return {name: entry.fields[name] for name in names if name in entry.fields}


def _canonical_json(fields: Mapping[str, str | int | bool]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _entry_hash(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}{text}".encode("utf-8", "surrogateescape")).hexdigest()
