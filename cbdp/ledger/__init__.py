"""What some riders' privacy has cost so far: an append-only, hash-chained file that is charged before noise is drawn.

A ledger belongs to one data set, or to riders whose trips several data sets hold (a year of one card system in twelve monthly
files): what a release of any of them costs adds up under one cap.

The order of a release is: `reserve` (committed to disk), draw, write the files, `released`. A crash at any instant leaves
ε spent, never noise drawn without a charge. Nothing gives ε back: what is spent is the sum of all that was reserved.

ε is counted in whole units of 10⁻⁹ and δ in units of 10⁻¹⁸. A charge rounds up and the cap rounds down, so the sums are
exact and err on the side of privacy. Ten charges of 1/10 fit a cap of 1. Three charges of 1/3 do not: each costs
0.333333334. Reserve 1 at once instead.

The chain shows every change to an entry that another one follows. If the tail is cut off whole, the shorter chain is
sound in itself: keep the head that a release's manifest states, and ask `contains`.

No entry holds a time: how long a release takes depends on private rows, and heads are published.

A ledger counts ε, or ρ (zero-concentrated differential privacy), and never both: where it counts ρ, a charge of ε is ε²/2 of it.
Charges may state the service days and the unit that they cover; then windows of days can have caps of their own.

A ledger is created when somebody asks for it, never because it is missing: a new one would forget what was spent.

| modules | what they do |
|---|---|
| charges | what is charged, for which days and unit, and to whom |
| windows | what charges cost one person in windows of days, and the caps on that |
| chain | entries, each checked against all before it, and their sum |
| store | the SQLite file: durable, append-only, locked between processes, read without a trace |

Here is the account, which puts these together: created, charged, closed by a note of what was released, verified.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cbdp.errors import BudgetError, InputError
from cbdp.ledger.chain import RESTORE_ADVICE, Entry, LedgerError, LedgerState, Row, parse_entry
from cbdp.ledger.charges import (
    SYMBOLS,
    AccountOwner,
    Amount,
    Charge,
    ChargeScope,
    FinishedCharge,
    SeriesPart,
    TotalSpent,
)
from cbdp.ledger.store import (
    OWNER_ONLY_MODE,
    Store,
    check_name,
    connect,
    exclusive_lock,
    prepare,
    snapshot_in_memory,
)
from cbdp.ledger.windows import Caps
from cbdp.numbers import Number, probability
from cbdp.privacy.noise import PrivacyMeasure

__all__ = [
    "AccountOwner",
    "Amount",
    "BudgetError",
    "Caps",
    "Charge",
    "ChargeScope",
    "Entry",
    "FinishedCharge",
    "Ledger",
    "LedgerError",
    "SeriesPart",
    "TotalSpent",
]


class Ledger:
    """The account of one data set, or of riders that several data sets share. Get one by `Ledger.open` or, to read, `Ledger.view`.

    >>> import tempfile
    >>> import cbdp
    >>> with tempfile.TemporaryDirectory() as folder, cbdp.Ledger.open(f"{folder}/ledger", cap=1, dataset="city", create=True) as ledger:
    ...     charge = ledger.reserve("a release", "1/2")
    ...     print(ledger.spent, ledger.left)
    0.5 0.5
    """

    def __init__(self, store: Store, dataset: str | None = None) -> None:
        self.path = store.path
        self._store = store
        self._dataset = dataset  # that charges are for
        self._state = LedgerState(store.path)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        dataset: str,
        riders: str | None = None,
        cap: Number | Mapping[str, Number] | Caps | None = None,
        cap_delta: Number | None = None,
        currency: PrivacyMeasure | None = None,
        create: bool = False,
        timeout: float = 60.0,
    ) -> Self:
        """Open a verified ledger to charge releases of a data set to. It belongs to the `riders`, if they are named.

        The caps are fixed when it is created; later they may be left out. A cap is a number, or a table of `total`, `per_day`,
        `per_7_days`, `per_30_days` and `per_year`. The currency is fixed likewise: "epsilon", the default, or "rho".
        """
        file = _resolved_path(path)
        owner = _owner_of(dataset, riders)
        if cap is None and cap_delta is not None:
            raise InputError(f"cap_delta is {cap_delta} without a cap: give both or neither")
        _check_currency(currency)
        caps = (
            cap
            if cap is None or isinstance(cap, Caps)
            else Caps.of(cap, cap_delta or 0, currency=currency or "epsilon")
        )
        if not file.exists():
            _may_create(file, caps, create=create)
        ledger = cls(connect(file, create=create, timeout=timeout), dataset)
        try:
            prepare(ledger._store, _opening_entry(file, owner, caps) if create else None, timeout)
            ledger.verify()
            ledger._must_be_of(owner)
            ledger._must_count(currency)
            if caps is not None:
                ledger._must_have(caps, compare_delta=cap_delta is not None or isinstance(cap, Caps))
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def view(
        cls, path: str | os.PathLike[str], *, dataset: str | None = None, riders: str | None = None
    ) -> Self:
        """A snapshot for reading: creates no file, and works on a copy or where nothing may be written.

        It is not verified yet, so that a broken ledger can be looked at: call `verify`.
        """
        file = _resolved_path(path)
        if not file.exists():
            raise InputError(f"there is no ledger at {file}: check the path")
        ledger = cls(snapshot_in_memory(file))
        try:
            ledger._store.must_be_started()
            if dataset is not None:
                ledger._must_be_of(_owner_of(dataset, riders))
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def started(cls, path: str | os.PathLike[str]) -> bool:
        """Whether there is a ledger; an empty file, left by a run that was killed while it created one, is none yet."""
        file = _resolved_path(path)
        if not file.exists():
            return False
        with cls(snapshot_in_memory(file)) as view:
            return view._store.started()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what is in it stays."""
        self._store.close()

    @property
    def id(self) -> str:
        """A random name that no other ledger has."""
        return self._current().id

    @property
    def owner(self) -> AccountOwner:
        """Whose privacy it accounts for: a data set, or riders."""
        return self._current().owner

    @property
    def cap(self) -> Amount:
        """The most that all charges may add up to."""
        return self._current().cap

    @property
    def caps(self) -> Caps:
        """That, and the caps of windows of days."""
        return self._current().caps

    @property
    def currency(self) -> PrivacyMeasure:
        """What it counts: "epsilon" or "rho"."""
        return self._current().cap.currency

    def charges(self) -> tuple[Charge, ...]:
        """All that was charged, in order."""
        return tuple(self._current().charges.values())

    @property
    def spent(self) -> Amount:
        """The sum of all that was reserved, whatever came after."""
        return self._current().spent

    @property
    def left(self) -> Amount:
        """What may still be charged under the cap."""
        return self._current().left

    def spending(self) -> dict[str, TotalSpent]:
        """What each data set has spent, in the order of their first charges."""
        return self._current().spending()

    @property
    def unpublished(self) -> Amount:
        """What was spent on runs of which no release is noted."""
        return sum(self.spending().values(), TotalSpent()).unpublished

    @property
    def head(self) -> str:
        """The hash of the last entry: it stands for the whole history up to it."""
        return self._current().head

    def contains(self, head: str) -> bool:
        """Whether the history that a manifest's head stands for is part of this ledger."""
        return head in self._current().heads

    def statement(self, charge: Charge) -> dict[str, Any]:
        """What the manifest of a charge's release says of this ledger: whoever has both can tell whether the ledger was cut or replaced."""
        return {"head": charge.head, "id": self.id, "owner": self.owner.json()}

    def entries(self) -> tuple[Entry, ...]:
        """All entries as they stand in the file, sound or not, in order."""
        return tuple(parse_entry(row, self.path) for row in self._store.rows())

    def verify(self) -> None:
        """Read everything from the start; raise `LedgerError` that names the first broken entry."""
        damage = self._store.damage()
        state = LedgerState(self.path)
        for row in self._store.rows():
            state.post(row)
        if damage is not None:
            raise LedgerError(f"the file of the ledger {self.path} is damaged: {damage}; {RESTORE_ADVICE}")
        if not state.sequence:
            raise _emptied(self.path)
        if self._state.sequence:
            self._current()  # what this object has seen must still be there
        self._state = state

    def reserve(
        self,
        request: str,
        epsilon: Number | None = None,
        delta: Number = 0,
        what: str = "",
        *,
        rho: Number | None = None,
        covers: ChargeScope | None = None,
        part: SeriesPart | None = None,
    ) -> Charge:
        """Charge ε (or ρ) and δ to the data set before noise is drawn; on disk when this returns. Over a cap: `BudgetError`.

        Where the ledger counts ρ, ε is charged as ε²/2 of it. A charge of ρ has no δ.

        Proof: docs/proofs/ledger.md.
        """
        _required_text(request, "request")
        amount = self.price(epsilon, delta, rho=rho)
        charge = secrets.token_hex(16)
        with self._writing() as state:
            dataset = self._dataset or state.owner.name
            state.check_admissible(Charge(charge, request, amount, what, "", dataset, covers, part))
            further = (covers.fields() if covers else {}) | (part.fields() if part else {})
            if amount.currency != "epsilon":
                further["currency"] = amount.currency
            entry = {"charge": charge, "request": request, "dataset": dataset, "what": what}
            self._store.append(
                state.following("reserved", **entry, nano=amount.nano, atto=amount.atto, **further)
            )
        return self._current().charges[charge]

    def price(self, epsilon: Number | None = None, delta: Number = 0, *, rho: Number | None = None) -> Amount:
        """What ε or ρ comes to in this ledger's currency."""
        if (epsilon is None) == (rho is None):
            raise InputError(f"epsilon is {epsilon} and rho is {rho}: a charge is of one of them")
        if rho is not None and probability(delta):
            raise InputError(f"delta is {delta} with rho = {rho}: charge ε and δ, or ρ without a δ")
        if epsilon is not None:
            return Amount.charge(epsilon, delta, currency=self.currency)
        if self.currency == "epsilon":
            raise InputError(
                f"the ledger {self.path} counts ε and cannot hold a charge of ρ = {rho}: create a ledger with the currency rho "
                "(privacy.currency), which holds both, or use a law of noise that costs ε"
            )
        assert rho is not None
        return Amount.charge_rho(rho)

    def would_refuse(self, request: str, amount: Amount, covers: ChargeScope | None = None) -> None:
        """Raise `BudgetError` if a charge does not fit; nothing is written."""
        self._current().check_admissible(Charge("", request, amount, "", "", "", covers))

    def released(self, charge: Charge, sha256: str, path: str | os.PathLike[str]) -> FinishedCharge:
        """Note that the charge's release is written and where; once per charge."""
        if len(sha256) != 64 or not set(sha256) <= set(string.hexdigits.lower()):
            raise InputError(f"sha256 is {sha256!r}: give 64 lower-case hexadecimal digits")
        with self._writing() as state:
            state.must_be_open(charge)
            self._store.append(
                state.following("released", charge=charge.id, sha256=sha256, path=os.fsdecode(path))
            )
        return self._current().finished[charge.id]

    def finished(self, request: str) -> FinishedCharge | None:
        """The newest written release of an identical request."""
        done = [f for f in self._current().finished.values() if f.charge.request == request]
        return done[-1] if done else None

    def unfinished(self, request: str | None = None) -> list[Charge]:
        """Charges without a release, of one request or of all: noise may have been drawn and lost."""
        return [c for c in self._current().open_charges() if request in (None, c.request)]

    @contextmanager
    def lock(self, request: str) -> Iterator[None]:
        """Hold back identical requests until this one is done, so that they find it finished instead of paying again.

        The system drops the lock when its holder ends, however it ends. Not re-entrant.
        """
        self._store.must_be_writable()
        mode = OWNER_ONLY_MODE
        digest = hashlib.sha256(
            _required_text(request, "request").encode("utf-8", "surrogatepass")
        ).hexdigest()
        with suppress(OSError):
            mode = self.path.stat().st_mode & 0o666
        with exclusive_lock(self.path.with_name(f"{self.path.name}-lock-{digest[:16]}"), mode):
            yield

    def _must_be_of(self, requested: AccountOwner) -> None:
        owner = self._current().owner
        if owner != requested:
            raise InputError(f"the ledger {self.path} {owner.refusal_of(requested)}")

    def _must_count(self, currency: PrivacyMeasure | None) -> None:
        fixed = self.currency
        if currency not in (None, fixed):
            raise InputError(
                f"the ledger {self.path} counts {SYMBOLS[fixed]}, not {SYMBOLS[currency]}: the currency was fixed when it was created; "
                f'write currency = "{fixed}", or name another ledger'
            )

    def _must_have(self, requested: Caps, *, compare_delta: bool) -> None:
        caps = self._current().caps
        total = requested.total
        if not compare_delta or total.currency != caps.total.currency:
            atto = total.atto if compare_delta else caps.total.atto
            requested = Caps(Amount(total.nano, atto, caps.total.currency), requested.windows)
        if requested != caps:
            raise InputError(
                f"the cap of the ledger {self.path} is {caps}, not {requested}: it was fixed when the ledger was created; "
                "leave the cap out, or give that one"
            )

    @contextmanager
    def _writing(self) -> Iterator[LedgerState]:
        """One transaction that starts from all that others have written."""
        with self._store.writing():
            yield self._current()

    def _current(self) -> LedgerState:
        """The state with all entries that were added since it was last looked at."""
        state = self._state
        for row in self._store.rows(state.sequence):
            if row[0] != state.sequence:
                state.post(row)
            elif row[3] != state.head:
                raise LedgerError(
                    f"entry {row[0]} of the ledger {self.path} was changed while it was open; {RESTORE_ADVICE}"
                )
        if state.sequence == 0:
            raise _emptied(self.path)
        return state


def _opening_entry(file: Path, owner: AccountOwner, caps: Caps | None) -> Row | None:
    """The first entry of a new ledger, if it is known how much may be spent."""
    if caps is None:
        return None
    return LedgerState(file).following(
        "opened", ledger=secrets.token_hex(16), **owner.json(), **caps.fields()
    )


def _check_currency(currency: str | None) -> None:
    if currency not in (None, *SYMBOLS):
        raise InputError(f"unknown currency {currency!r}: use 'epsilon' or 'rho'")


def _emptied(path: Path) -> LedgerError:
    return LedgerError(f"the ledger {path} is broken: entry 1 is missing; {RESTORE_ADVICE}")


def _required_text(value: str, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{what} is {value!r}: give a text that is not empty")
    return value


def _owner_of(dataset: str, riders: str | None) -> AccountOwner:
    _required_text(dataset, "dataset")
    return AccountOwner.of(dataset, None if riders is None else _required_text(riders, "riders"))


def _resolved_path(path: str | os.PathLike[str]) -> Path:
    try:
        file = Path(path).resolve()
        folder = file.is_dir()
        whole = folder or not file.exists() or file.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links that lead to one another
        raise InputError(
            f"the ledger {os.fspath(path)!r} cannot be reached: {error}; check the path"
        ) from None
    if folder:
        raise InputError(f"the ledger {file} is a folder: give the path of a file")
    if not whole:
        raise InputError(f"the ledger {file} is a pipe or a device: give the path of a file")
    check_name(file)
    return file


def _may_create(file: Path, caps: Caps | None, *, create: bool) -> None:
    if not create:
        raise InputError(f"there is no ledger at {file}: open it with create=True to start one")
    if caps is None:
        raise InputError(
            f"the ledger {file} does not exist yet and needs a cap: say how much ε may be spent in all"
        )
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent} for the ledger: create it first")
