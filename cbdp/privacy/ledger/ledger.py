"""The account of some riders: created, charged before noise is drawn, told of what was released, verified."""

from __future__ import annotations

import hashlib
import os
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cbdp.errors import BudgetError, InputError
from cbdp.privacy.ledger.amounts import Amount, Charge, Finished, Spending
from cbdp.privacy.ledger.chain import RESTORE, Book, Entry, LedgerError, Row, parsed
from cbdp.privacy.ledger.locks import held
from cbdp.privacy.ledger.owner import Owner
from cbdp.privacy.ledger.snapshot import snapshot
from cbdp.privacy.ledger.store import Store, connect, prepare
from cbdp.privacy.numbers import Number


class Ledger:
    """The account of one data set, or of riders that several share. Get one by `Ledger.open` or, to read, `Ledger.view`."""

    def __init__(self, store: Store, dataset: str | None = None) -> None:
        self.path = store.path
        self._store = store
        self._dataset = dataset  # that charges are for
        self._book = Book(store.path)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        dataset: str,
        riders: str | None = None,
        cap: Number | None = None,
        cap_delta: Number | None = None,
        create: bool = False,
        timeout: float = 60.0,
    ) -> Self:
        """Open a verified ledger to charge releases of a data set to. It belongs to the `riders`, if they are named.

        The caps are fixed when it is created; later they may be left out.
        """
        file = _place(path)
        owner = _owner(dataset, riders)
        if cap is None and cap_delta is not None:
            raise InputError(f"cap_delta is {cap_delta} without a cap: give both or neither")
        limit = None if cap is None else Amount.limit(cap, cap_delta or 0)
        if not file.exists():
            _may_create(file, limit, create=create)
        ledger = cls(connect(file, create=create, timeout=timeout), dataset)
        try:
            prepare(ledger._store, _opening(file, owner, limit) if create else None, timeout)
            ledger.verify()
            ledger._must_be_of(owner)
            if limit is not None:
                ledger._must_have(limit, compare_delta=cap_delta is not None)
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
        file = _place(path)
        if not file.exists():
            raise InputError(f"there is no ledger at {file}: check the path")
        ledger = cls(snapshot(file))
        try:
            ledger._store.must_be_started()
            if dataset is not None:
                ledger._must_be_of(_owner(dataset, riders))
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def started(cls, path: str | os.PathLike[str]) -> bool:
        """Whether there is a ledger; an empty file, left by a run that was killed while it created one, is none yet."""
        file = _place(path)
        if not file.exists():
            return False
        with cls(snapshot(file)) as view:
            return view._store.started()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    @property
    def id(self) -> str:
        """A random name that no other ledger has."""
        return self._current().id

    @property
    def owner(self) -> Owner:
        return self._current().owner

    @property
    def cap(self) -> Amount:
        return self._current().cap

    @property
    def spent(self) -> Amount:
        """The sum of all that was reserved, whatever came after."""
        return self._current().spent

    @property
    def left(self) -> Amount:
        return self._current().left

    def spending(self) -> dict[str, Spending]:
        """What each data set has spent, in the order of their first charges."""
        return self._current().spending()

    @property
    def unpublished(self) -> Amount:
        """What was spent on runs of which no release is noted."""
        return sum(self.spending().values(), Spending()).unpublished

    @property
    def head(self) -> str:
        """The hash of the last entry: it stands for the whole history up to it."""
        return self._current().head

    def contains(self, head: str) -> bool:
        """Whether the history that a manifest's head stands for is part of this ledger."""
        return head in self._current().heads

    def statement(self, charge: Charge) -> dict[str, Any]:
        """What the manifest of a charge's release says of this ledger: whoever has both can tell a cut or another one."""
        return {"head": charge.head, "id": self.id, "owner": self.owner.json()}

    def entries(self) -> tuple[Entry, ...]:
        """All entries as they stand in the file, sound or not, in order."""
        return tuple(parsed(row, self.path) for row in self._store.rows())

    def verify(self) -> None:
        """Read everything from the start; raise `LedgerError` that names the first broken entry."""
        damage = self._store.damage()
        book = Book(self.path)
        for row in self._store.rows():
            book.post(row)
        if damage is not None:
            raise LedgerError(f"the file of the ledger {self.path} is damaged: {damage}; {RESTORE}")
        if not book.sequence:
            raise _emptied(self.path)
        if self._book.sequence:
            self._current()  # what this object has seen must still be there
        self._book = book

    def reserve(self, request: str, epsilon: Number, delta: Number = 0, what: str = "") -> Charge:
        """Charge ε and δ to the data set before noise is drawn; on disk when this returns. Over the cap: `BudgetError`."""
        _text(request, "request")
        amount = Amount.charge(epsilon, delta)
        charge = secrets.token_hex(16)
        with self._writing() as book:
            if not amount.within(book.left):
                raise BudgetError(
                    f"a charge of {amount} does not fit: {book.left} of the cap {book.cap} is left for {book.owner}; "
                    "ask for less (a charge rounds up to 9 decimals)"
                )
            self._store.append(
                book.following(
                    "reserved",
                    charge=charge,
                    request=request,
                    dataset=self._dataset or book.owner.name,
                    nano=amount.nano,
                    atto=amount.atto,
                    what=what,
                )
            )
        return self._current().charges[charge]

    def released(self, charge: Charge, sha256: str, path: str | os.PathLike[str]) -> Finished:
        """Note that the charge's release is written and where; once per charge."""
        if len(sha256) != 64 or not set(sha256) <= set(string.hexdigits.lower()):
            raise InputError(f"sha256 is {sha256!r}: give 64 lower-case hexadecimal digits")
        with self._writing() as book:
            book.must_be_open(charge)
            self._store.append(
                book.following("released", charge=charge.id, sha256=sha256, path=os.fsdecode(path))
            )
        return self._current().finished[charge.id]

    def finished(self, request: str) -> Finished | None:
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
        digest = hashlib.sha256(_text(request, "request").encode("utf-8", "surrogatepass")).hexdigest()
        with held(self.path.with_name(f"{self.path.name}-lock-{digest[:16]}")):
            yield

    def _must_be_of(self, asked: Owner) -> None:
        owner = self._current().owner
        if owner != asked:
            raise InputError(f"the ledger {self.path} {owner.refusal_of(asked)}")

    def _must_have(self, limit: Amount, *, compare_delta: bool) -> None:
        cap = self._current().cap
        asked = limit if compare_delta else Amount(limit.nano, cap.atto)
        if asked != cap:
            raise InputError(
                f"the cap of the ledger {self.path} is {cap}, not {asked}: it was fixed when the ledger was created; "
                "leave the cap out, or give that one"
            )

    @contextmanager
    def _writing(self) -> Iterator[Book]:
        """One transaction that starts from all that others have written."""
        with self._store.writing():
            yield self._current()

    def _current(self) -> Book:
        """The book with all entries that were added since it was last looked at."""
        book = self._book
        for row in self._store.rows(book.sequence):
            if row[0] != book.sequence:
                book.post(row)
            elif row[3] != book.head:
                raise LedgerError(
                    f"entry {row[0]} of the ledger {self.path} was changed while it was open; {RESTORE}"
                )
        if book.sequence == 0:
            raise _emptied(self.path)
        return book


def _opening(file: Path, owner: Owner, cap: Amount | None) -> Row | None:
    """The first entry of a new ledger, if it is known how much may be spent."""
    if cap is None:
        return None
    caps = {"cap_nano": cap.nano, "cap_atto": cap.atto}
    return Book(file).following("opened", ledger=secrets.token_hex(16), **owner.json(), **caps)


def _emptied(path: Path) -> LedgerError:
    return LedgerError(f"the ledger {path} is broken: entry 1 is missing; {RESTORE}")


def _text(value: str, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{what} is {value!r}: give a text that is not empty")
    return value


def _owner(dataset: str, riders: str | None) -> Owner:
    _text(dataset, "dataset")
    return Owner.of(dataset, None if riders is None else _text(riders, "riders"))


def _place(path: str | os.PathLike[str]) -> Path:
    try:
        file = Path(path).resolve()
        folder = file.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(
            f"the ledger {os.fspath(path)!r} cannot be reached: {error}; check the path"
        ) from None
    if folder:
        raise InputError(f"the ledger {file} is a folder: give the path of a file")
    return file


def _may_create(file: Path, limit: Amount | None, *, create: bool) -> None:
    if not create:
        raise InputError(f"there is no ledger at {file}: open it with create=True to start one")
    if limit is None:
        raise InputError(
            f"the ledger {file} does not exist yet and needs a cap: say how much ε may be spent in all"
        )
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent} for the ledger: create it first")
