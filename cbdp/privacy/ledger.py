"""What a data set's privacy has cost so far: an append-only, hash-chained file that is charged before noise is drawn.

The order of a release is: `reserve` (committed to disk), draw, write the files, `released`. A crash at any instant leaves
ε spent, never noise drawn without a charge. Nothing gives ε back: what is spent is the sum of all that was reserved.

ε is counted in whole units of 10⁻⁹ and δ in units of 10⁻¹⁸. A charge rounds up and the cap rounds down, so the sums are
exact and err on the side of privacy. Ten charges of 1/10 fit a cap of 1. Three charges of 1/3 do not: each costs
0.333333334. Whoever wants that reserves 1 at once.

The chain shows every change to an entry that another follows. A tail cut off whole leaves a shorter chain that is sound
in itself: keep the head that a release's manifest states, and ask `contains`.

No entry holds a time: how long a release takes depends on private rows, and heads are published.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import string
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cbdp.errors import BudgetError as OverBudgetError
from cbdp.errors import CbdpError, InputError
from cbdp.privacy.budget import Number, positive, probability

NANO, ATTO = 10**9, 10**18
GENESIS = "0" * 64  # what the first entry names as its predecessor

_APPLICATION = 0x63626470  # "cbdp", in the header of the file
_VERSION = 1
_FLOCK = find_spec("fcntl") is not None
_SNAPSHOT_TRIES = 50

# INSERT OR REPLACE fires no delete trigger, so the insert trigger itself refuses a number that is taken. For the same
# reason no other column is UNIQUE: a conflict there would replace an older row silently.
_SCHEMA = {
    "entry": "CREATE TABLE entry (sequence INTEGER PRIMARY KEY, previous TEXT NOT NULL, entry TEXT NOT NULL, hash TEXT NOT NULL)",
    "append": "CREATE TRIGGER append BEFORE INSERT ON entry "
    "WHEN NEW.sequence IS NOT (SELECT COALESCE(MAX(sequence), 0) + 1 FROM entry) OR NEW.previous IS NOT "
    "COALESCE((SELECT hash FROM entry ORDER BY sequence DESC LIMIT 1), printf('%064d', 0)) "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "no_update": "CREATE TRIGGER no_update BEFORE UPDATE ON entry "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "no_delete": "CREATE TRIGGER no_delete BEFORE DELETE ON entry "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
}

_FIELDS: dict[str, dict[str, type]] = {
    "opened": {"ledger": str, "dataset": str, "cap_nano": int, "cap_atto": int},
    "reserved": {"charge": str, "request": str, "nano": int, "atto": int, "what": str},
    "released": {"charge": str, "sha256": str, "path": str},
    "abandoned": {"charge": str, "note": str},
}


class BudgetError(OverBudgetError, InputError):
    """A charge does not fit what is left under the ledger's cap. Nothing was written."""


class LedgerError(CbdpError):
    """The ledger's entries are not what was once written. The message names the first that is broken."""


@dataclass(frozen=True)
class Amount:
    """An amount of privacy in whole units: ε in 10⁻⁹, δ in 10⁻¹⁸."""

    nano: int = 0
    atto: int = 0

    @classmethod
    def charge(cls, epsilon: Number, delta: Number = 0) -> Amount:
        """The least amount that covers ε and δ.

        >>> print(Amount.charge("1/3"), Amount.charge(0.1), Amount.charge(2, "1e-6"))
        0.333333334 0.1 (2, δ 0.000001)
        """
        return cls(-(-positive(epsilon) * NANO // 1), -(-probability(delta) * ATTO // 1))

    @classmethod
    def limit(cls, epsilon: Number, delta: Number = 0) -> Amount:
        """The greatest amount within ε and δ.

        >>> print(Amount.limit("2/3"))
        0.666666666
        """
        nano = positive(epsilon, "cap") * NANO // 1
        if nano == 0:
            raise InputError(f"cap is {epsilon}, it must be at least 0.000000001")
        return cls(nano, probability(delta, "cap_delta") * ATTO // 1)

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.nano, NANO)

    @property
    def delta(self) -> Fraction:
        return Fraction(self.atto, ATTO)

    def within(self, other: Amount) -> bool:
        return self.nano <= other.nano and self.atto <= other.atto

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano + other.nano, self.atto + other.atto)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano - other.nano, self.atto - other.atto)

    def __str__(self) -> str:
        epsilon = _decimal(self.nano, 9)
        return epsilon if self.atto == 0 else f"({epsilon}, δ {_decimal(self.atto, 18)})"


@dataclass(frozen=True)
class Charge:
    """Privacy reserved for one request; `head` is the hash of its entry, for the manifest."""

    id: str
    request: str
    amount: Amount
    what: str
    head: str

    @property
    def epsilon(self) -> Fraction:
        return self.amount.epsilon

    @property
    def delta(self) -> Fraction:
        return self.amount.delta


@dataclass(frozen=True)
class Finished:
    """A charge whose release was written: the SHA-256 of its manifest, and where it lies."""

    charge: Charge
    sha256: str
    path: str


@dataclass(frozen=True)
class Entry:
    """One event as the file holds it."""

    sequence: int
    event: str
    fields: Mapping[str, Any]
    previous: str
    hash: str


class Ledger:
    """The account of one data set. Get one by `Ledger.open` or, for reading only, `Ledger.view`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, writable: bool) -> None:
        self.path = path
        self._connection = connection
        self._writable = writable
        self._book = _Book(path)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        dataset: str,
        cap: Number | None = None,
        cap_delta: Number | None = None,
        create: bool = False,
        timeout: float = 60.0,
    ) -> Self:
        """Open a verified ledger for charging. The caps are fixed when it is created; later they may be left out."""
        file = _place(path)
        _text(dataset, "dataset")
        if cap is None and cap_delta is not None:
            raise InputError(f"cap_delta is {cap_delta} without a cap: give both or none")
        limit = None if cap is None else Amount.limit(cap, cap_delta or 0)
        if not file.exists():
            _may_create(file, limit, create=create)
        with _clear_errors(file):
            connection = sqlite3.connect(
                f"{file.as_uri()}?mode={'rwc' if create else 'rw'}",
                uri=True,
                timeout=timeout,
                isolation_level=None,
            )
        ledger = cls(file, connection, writable=True)
        try:
            ledger._prepare(dataset, limit if create else None, timeout)
            ledger._belongs(dataset, limit, compare_delta=cap_delta is not None)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def view(cls, path: str | os.PathLike[str], *, dataset: str | None = None) -> Self:
        """A snapshot for reading: creates no file, and works on a copy or where nothing may be written.

        It is not verified yet, so that a broken ledger can be looked at: call `verify`.
        """
        file = _place(path)
        if not file.exists():
            raise InputError(f"there is no ledger at {file}")
        with _clear_errors(file):
            ledger = cls(file, _snapshot(file), writable=False)
        try:
            ledger._recognise(create=False)
            if dataset is not None:
                ledger._belongs(dataset, None, compare_delta=False)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def started(cls, path: str | os.PathLike[str]) -> bool:
        """Whether there is a ledger; a file that a killed run has left empty is none yet."""
        file = _place(path)
        if not file.exists():
            return False
        with _clear_errors(file):
            view = cls(file, _snapshot(file), writable=False)
        try:
            return view._recognise(create=True)
        finally:
            view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @property
    def dataset(self) -> str:
        return self._current().dataset

    @property
    def cap(self) -> Amount:
        return self._current().cap

    @property
    def spent(self) -> Amount:
        """The sum of all that was reserved, whatever came after."""
        return self._current().spent

    @property
    def left(self) -> Amount:
        book = self._current()
        return book.cap - book.spent

    @property
    def head(self) -> str:
        """The hash of the last entry: it stands for the whole history up to it."""
        return self._current().head

    def contains(self, head: str) -> bool:
        """Whether the history that a manifest's head stands for is part of this ledger."""
        return head in self._current().heads

    def entries(self) -> tuple[Entry, ...]:
        """All entries as they stand in the file, sound or not, in order."""
        return tuple(_parsed(row, self.path) for row in self._rows())

    def verify(self) -> None:
        """Read everything from the start; raise `LedgerError` that names the first broken entry."""
        with _clear_errors(self.path):
            _check_schema(self._connection, self.path)
            [(found,), *_] = self._connection.execute("PRAGMA integrity_check(1)").fetchall()
        book = _Book(self.path)
        for row in self._rows():
            book.post(row)
        if found != "ok":
            raise LedgerError(f"the file of the ledger {self.path} is damaged: {found}")
        if not book.sequence:
            raise LedgerError(f"the ledger {self.path} is broken: entry 1 is missing")
        if self._book.sequence:
            self._current()  # what this object has seen must still be there
        self._book = book

    def reserve(self, request: str, epsilon: Number, delta: Number = 0, what: str = "") -> Charge:
        """Charge ε and δ before noise is drawn; on disk when this returns. Over the cap: `BudgetError`."""
        _text(request, "request")
        amount = Amount.charge(epsilon, delta)
        charge = secrets.token_hex(16)
        with self._writing() as book:
            left = book.cap - book.spent
            if not amount.within(left):
                raise BudgetError(
                    f"a charge of {amount} does not fit: {left} of the cap {book.cap} is left for data set "
                    f"{book.dataset!r} (a charge rounds up to 10⁻⁹)"
                )
            self._append(
                "reserved", charge=charge, request=request, nano=amount.nano, atto=amount.atto, what=what
            )
        return self._current().charges[charge]

    def released(self, charge: Charge, sha256: str, path: str | os.PathLike[str]) -> Finished:
        """Note that the charge's release is written and where; once per charge."""
        if len(sha256) != 64 or not set(sha256) <= set(string.hexdigits.lower()):
            raise InputError(f"sha256 is {sha256!r}, give 64 lower-case hexadecimal digits")
        with self._writing() as book:
            book.must_be_open(charge)
            self._append("released", charge=charge.id, sha256=sha256, path=os.fsdecode(path))
        return self._current().finished[charge.id]

    def abandoned(self, charge: Charge, note: str) -> None:
        """Note that a charge will never be released. It stays spent."""
        with self._writing() as book:
            book.must_be_open(charge)
            self._append("abandoned", charge=charge.id, note=note)

    def finished(self, request: str) -> Finished | None:
        """The newest written release of an identical request."""
        done = [f for f in self._current().finished.values() if f.charge.request == request]
        return done[-1] if done else None

    def unfinished(self, request: str | None = None) -> list[Charge]:
        """Charges neither released nor abandoned, of one request or of all: noise may have been drawn and lost."""
        book = self._current()
        return [c for c in book.charges.values() if book.is_open(c.id) and request in (None, c.request)]

    @contextmanager
    def lock(self, request: str) -> Iterator[None]:
        """Hold back identical requests until this one is done, so that they find it finished instead of paying again.

        The system drops the lock when its holder ends, however it ends. Not re-entrant.
        """
        self._must_be_writable()
        digest = hashlib.sha256(_text(request, "request").encode("utf-8", "surrogatepass")).hexdigest()
        beside = self.path.with_name(f"{self.path.name}-lock-{digest[:16]}")
        with _flock(beside) if _FLOCK else _sqlite_lock(beside):
            yield

    def _recognise(self, *, create: bool) -> bool:
        """Whether this is a ledger; an empty file may become one, anything else is refused."""
        with _clear_errors(self.path):
            self._connection.text_factory = _lenient
            known = _is_ledger(self._connection, self.path)
        if not known and not create:
            raise InputError(f"{self.path} is empty, not a ledger: open it with a cap and create=True")
        return known

    def _prepare(self, dataset: str, limit: Amount | None, timeout: float) -> None:
        """Create what is missing, then make sure that all that is there is sound."""
        known = self._recognise(create=limit is not None)
        with _clear_errors(self.path):
            if limit is not None and not known:
                self._connection.execute("PRAGMA synchronous=EXTRA")
                self._create(dataset, limit)
                _sync_folder(self.path.parent)
            _use_wal(self._connection, self.path, timeout)
            for pragma in ("synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            # SQLite opens a read-only file without a word: find out by a write of nothing, not at the first charge.
            self._connection.execute("DELETE FROM entry WHERE FALSE")
        self.verify()

    def _create(self, dataset: str, limit: Amount) -> None:
        """Tables, marks and first entry in one transaction: a crash leaves an empty file or a whole ledger."""
        with _transaction(self._connection):
            if _is_ledger(self._connection, self.path):
                return  # another process was faster
            for statement in _SCHEMA.values():
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id={_APPLICATION}")
            self._connection.execute(f"PRAGMA user_version={_VERSION}")
            self._append(
                "opened",
                ledger=secrets.token_hex(16),
                dataset=dataset,
                cap_nano=limit.nano,
                cap_atto=limit.atto,
            )

    def _belongs(self, dataset: str, limit: Amount | None, *, compare_delta: bool) -> None:
        book = self._current()
        if book.dataset != dataset:
            raise InputError(
                f"the ledger {self.path} is of data set {book.dataset!r}, not {dataset!r}: "
                "every data set has its own"
            )
        if limit is None:
            return
        asked = limit if compare_delta else Amount(limit.nano, book.cap.atto)
        if asked != book.cap:
            raise InputError(
                f"the cap of the ledger {self.path} is {book.cap}, not {asked}: it is fixed at creation"
            )

    def _must_be_writable(self) -> None:
        if not self._writable:
            raise InputError(f"the ledger {self.path} is open for reading only: use Ledger.open to charge it")

    @contextmanager
    def _writing(self) -> Iterator[_Book]:
        """One immediate transaction that starts from all that others have written."""
        self._must_be_writable()
        with _clear_errors(self.path), _transaction(self._connection):
            yield self._current()

    def _append(self, event: str, **fields: str | int) -> None:
        """Add an entry inside a transaction. The book takes it in when it reads it back from the file."""
        sequence, previous = self._book.sequence + 1, self._book.head
        text = _canonical({"sequence": sequence, "event": event, **fields})
        self._connection.execute(
            "INSERT INTO entry VALUES (?, ?, ?, ?)", (sequence, previous, text, _hash(previous, text))
        )

    def _current(self) -> _Book:
        """The book with all entries that were added since it was last looked at."""
        book = self._book
        for row in self._rows(book.sequence):
            if row[0] != book.sequence:
                book.post(row)
            elif row[3] != book.head:
                raise LedgerError(f"entry {row[0]} of the ledger {self.path} was changed while it was open")
        if book.sequence == 0:
            raise LedgerError(f"the ledger {self.path} is broken: entry 1 is missing")
        return book

    def _rows(self, since: int = 0) -> list[_Row]:
        """Rows in order; if some were seen before, from the last of them on."""
        with _clear_errors(self.path):
            rows = self._connection.execute(
                "SELECT sequence, previous, entry, hash FROM entry WHERE sequence >= ? ORDER BY sequence",
                (since or -(2**63),),
            ).fetchall()
        if since and (not rows or rows[0][0] != since):
            raise LedgerError(f"entry {since} of the ledger {self.path} was removed while it was open")
        return rows


_Row = tuple[int, str, str, str]


@dataclass
class _Book:
    """The sum of a ledger's entries, each checked as it is posted."""

    path: Path
    sequence: int = 0
    head: str = GENESIS
    heads: set[str] = field(default_factory=set)
    dataset: str = ""
    cap: Amount = Amount()
    spent: Amount = Amount()
    charges: dict[str, Charge] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)

    def post(self, row: _Row) -> None:
        """Check an entry against all before it, then take it in."""
        sequence, previous, text, digest = row
        expected = self.sequence + 1
        if sequence != expected:
            raise _broken(self.path, expected, f"it is missing, the next there is {sequence}")
        if previous != self.head:
            raise _broken(self.path, sequence, "it does not follow from the entry before")
        if not isinstance(text, str) or digest != _hash(previous, text):
            raise _broken(self.path, sequence, "its hash is not that of its content")
        entry = _parsed(row, self.path)
        if (entry.event == "opened") != (sequence == 1):
            raise _broken(self.path, sequence, "a ledger is opened once, by entry 1")
        getattr(self, f"_{entry.event}")(entry)
        self.sequence, self.head = sequence, digest
        self.heads.add(digest)

    def is_open(self, charge: str) -> bool:
        return charge in self.charges and charge not in self.finished and charge not in self.given_up

    def must_be_open(self, charge: Charge) -> None:
        if self.charges.get(charge.id) != charge:
            raise InputError(f"charge {charge.id!r} is not of the ledger {self.path}")
        if charge.id in self.given_up:
            raise InputError(f"charge {charge.id!r} was abandoned: reserve anew")
        if charge.id in self.finished:
            raise InputError(
                f"charge {charge.id!r} was released already, to {self.finished[charge.id].path!r}: reserve anew"
            )

    def _opened(self, entry: Entry) -> None:
        cap = Amount(entry.fields["cap_nano"], entry.fields["cap_atto"])
        if cap.nano <= 0 or not 0 <= cap.atto < ATTO:
            raise _broken(self.path, entry.sequence, f"the cap {cap} is none")
        self.dataset, self.cap = entry.fields["dataset"], cap

    def _reserved(self, entry: Entry) -> None:
        amount = Amount(entry.fields["nano"], entry.fields["atto"])
        charge = entry.fields["charge"]
        if amount.nano <= 0 or amount.atto < 0:
            raise _broken(self.path, entry.sequence, f"a charge of {amount} is none")
        if charge in self.charges:
            raise _broken(self.path, entry.sequence, "its charge was reserved before")
        if not (self.spent + amount).within(self.cap):
            raise _broken(
                self.path,
                entry.sequence,
                f"the sum of charges {self.spent + amount} is over the cap {self.cap}",
            )
        self.spent += amount
        self.charges[charge] = Charge(
            charge, entry.fields["request"], amount, entry.fields["what"], entry.hash
        )

    def _released(self, entry: Entry) -> None:
        charge = self._settled(entry)
        self.finished[charge.id] = Finished(charge, entry.fields["sha256"], entry.fields["path"])

    def _abandoned(self, entry: Entry) -> None:
        self.given_up.add(self._settled(entry).id)

    def _settled(self, entry: Entry) -> Charge:
        charge = self.charges.get(entry.fields["charge"])
        if charge is None:
            raise _broken(self.path, entry.sequence, f"{entry.event} without being reserved")
        if charge.id in self.finished:
            raise _broken(self.path, entry.sequence, f"{entry.event} after being released")
        if charge.id in self.given_up:
            raise _broken(self.path, entry.sequence, f"{entry.event} after being abandoned")
        return charge


def _broken(path: Path, sequence: int, why: str) -> LedgerError:
    return LedgerError(
        f"entry {sequence} of the ledger {path} is broken: {why}; go back to a copy that you trust"
    )


def _parsed(row: _Row, path: Path) -> Entry:
    """The entry of a row, if it is one: canonical JSON with exactly the fields of its event."""
    sequence, previous, text, digest = row
    try:
        fields = json.loads(text)
        event = fields.pop("event")
        sound = (
            fields.pop("sequence") == sequence
            and {name: type(value) for name, value in fields.items()} == _FIELDS[event]
            and _canonical({"sequence": sequence, "event": event, **fields}) == text
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise _broken(path, sequence, "it is not an entry that a ledger writes")
    return Entry(sequence, event, fields, previous, digest)


def _canonical(fields: Mapping[str, str | int]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _hash(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}{text}".encode("utf-8", "surrogateescape")).hexdigest()


def _decimal(units: int, digits: int) -> str:
    sign, whole = ("-" if units < 0 else ""), str(abs(units)).zfill(digits + 1)
    return f"{sign}{whole[:-digits]}.{whole[-digits:]}".rstrip("0").rstrip(".")


def _text(value: str, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{what} is {value!r}, give a text that is not empty")
    return value


def _lenient(raw: bytes) -> str:
    """Text that was tampered with may be no UTF-8; the chain is to say so, not the decoder."""
    return raw.decode("utf-8", "surrogateescape")


def _place(path: str | os.PathLike[str]) -> Path:
    try:
        file = Path(path).resolve()
        folder = file.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(f"the ledger {os.fspath(path)!r} cannot be reached: {error}") from None
    if folder:
        raise InputError(f"the ledger {file} is a folder, give a file")
    return file


def _may_create(file: Path, limit: Amount | None, *, create: bool) -> None:
    if not create:
        raise InputError(f"there is no ledger at {file}: open it with create=True to start one")
    if limit is None:
        raise InputError(f"the ledger {file} does not exist yet and needs a cap: say how much ε may be spent")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent} for the ledger: create it first")


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the system into one line that says what to do."""
    try:
        yield
    except OSError as error:
        raise InputError(f"the ledger {path} cannot be used: {error.strerror}") from None
    except UnicodeError:  # SQLite quotes damaged text in its message, which Python then cannot read
        raise LedgerError(
            f"the file of the ledger {path} is damaged; go back to a copy that you trust"
        ) from None
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT:
            raise LedgerError(
                f"the file of the ledger {path} is damaged: {error}; go back to a copy that you trust"
            ) from None
        advice = {
            sqlite3.SQLITE_NOTADB: f"{path} is not a ledger: it is no SQLite file",
            sqlite3.SQLITE_BUSY: f"the ledger {path} is held by another process: try again, or with a longer timeout",
            sqlite3.SQLITE_READONLY: f"the ledger {path} may not be written: check the permissions of file and folder",
            sqlite3.SQLITE_CANTOPEN: f"the ledger {path} cannot be opened: check the permissions of file and folder",
        }
        raise InputError(advice.get(code, f"the ledger {path} cannot be used: {error}")) from None


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_ledger(connection: sqlite3.Connection, path: Path) -> bool:
    """True for a ledger, False for an empty file; anything else is an error."""
    [(application, version, things)] = connection.execute(
        "SELECT a.application_id, v.user_version, (SELECT COUNT(*) FROM sqlite_master) "
        "FROM pragma_application_id AS a, pragma_user_version AS v"
    ).fetchall()
    if application == 0 and version == 0 and things == 0:
        return False
    if application != _APPLICATION:
        raise InputError(f"{path} is not a ledger: it is the SQLite file of another program")
    if version > _VERSION:
        raise InputError(
            f"the ledger {path} is of schema {version} and this version of cbdp knows {_VERSION}: update cbdp"
        )
    return True


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    found = dict(
        connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type NOT IN ('table', 'index') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        ).fetchall()
    )
    for name in [*_SCHEMA, *found]:
        if found.get(name) != _SCHEMA.get(name):
            state = "is missing" if name not in found else "is not as it was created"
            raise LedgerError(f"the ledger {path} is broken: {name!r} of its schema {state}")


def _use_wal(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Switch to write-ahead logging. SQLite does not wait for others here, so we do."""
    end = time.monotonic() + timeout
    while True:
        try:
            [(mode,)] = connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise InputError(f"the ledger {path} cannot keep a write-ahead log there: put it on a local disk")
        return


def _sync_folder(folder: Path) -> None:
    """Make a new file's name last; not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _snapshot(file: Path) -> sqlite3.Connection:
    """A copy of the ledger in memory.

    Reading a file with a write-ahead log would create files beside it where there are none. So SQLite's locks are used
    only if its shared-memory file is there, as it is while anyone has the ledger open and after a crash. Without it the
    file is at rest and is read as it is, again if someone began to write meanwhile.
    """
    for _ in range(_SNAPSHOT_TRIES):
        before = _stamp(file)
        try:
            memory = _in_memory(file, before)
        except (sqlite3.Error, OSError):
            if _stamp(file) == before:
                raise
        else:
            if before["-shm"] or _stamp(file) == before:
                return memory
            memory.close()
        time.sleep(0.01)
    raise InputError(f"the ledger {file} changes too fast to be read: try again")


_Stamp = dict[str, tuple[int, int, int] | None]  # size, time and identity of the files; None: not there


def _stamp(file: Path) -> _Stamp:
    stamps: _Stamp = {}
    for suffix in ("", "-wal", "-shm"):
        try:
            about = Path(f"{file}{suffix}").stat()
        except OSError:
            stamps[suffix] = None
        else:
            stamps[suffix] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return stamps


def _in_memory(file: Path, found: _Stamp) -> sqlite3.Connection:
    if found["-shm"]:
        return _backup(f"{file.as_uri()}?mode=ro")
    if not found["-wal"] or found["-wal"][0] == 0:
        return _backup(f"{file.as_uri()}?immutable=1")
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # a copy of file and log: SQLite must replay the log somewhere
        copy = Path(folder) / "ledger"
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{file}{suffix}", f"{copy}{suffix}")
        return _backup(f"{copy.as_uri()}?mode=rw")


def _backup(uri: str) -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=60.0)) as source:
            source.backup(memory)
    except BaseException:
        memory.close()
        raise
    return memory


@contextmanager
def _flock(file: Path) -> Iterator[None]:
    with _clear_errors(file):
        handle = _locked(file)
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()  # while it is held: whoever waits for it sees that it is gone and starts anew
        os.close(handle)


def _locked(file: Path) -> int:
    import fcntl

    while True:
        handle = os.open(file, os.O_RDONLY | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if file.exists() and os.path.samestat(os.fstat(handle), file.stat()):
                return handle
        except FileNotFoundError:
            pass  # removed by its last holder between the two looks
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextmanager
def _sqlite_lock(file: Path) -> Iterator[None]:
    """The same where there is no flock, by a transaction held open on a file that stays empty and stays there."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=1.0)) as connection:
        while not connection.in_transaction:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                if not _is_busy(error):
                    raise InputError(f"the lock {file} cannot be made: {error}") from None
        yield
