"""The SQLite file that holds a ledger: created whole, append-only by trigger, written durably, locked between processes, read without a trace.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from cbdp.errors import InputError
from cbdp.ledger.chain import RESTORE_ADVICE, LedgerError, Row

# INSERT OR REPLACE fires no delete trigger, so the insert trigger itself refuses a number that is taken. For the same
# reason no other column is UNIQUE: a conflict there would replace an older row silently.
LEDGER_SCHEMA = {
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

_APPLICATION_ID = 0x63626470  # "cbdp", in the header of the file
# of the entries: since 2 charges name their data set, and a ledger may belong to riders; since 3 a ledger may count ρ and cap
# windows of days, and charges may state the days and the unit they cover; since 4 a charge may pay sums over days
_FORMAT_VERSION = 4
OWNER_ONLY_MODE = 0o600  # permissions of a new ledger: who may read it sees when runs died
_CANNOT_SYNC = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EISDIR}


@dataclass(frozen=True)
class Store:
    """An open ledger file, or the copy of one in memory."""

    path: Path
    connection: sqlite3.Connection
    writable: bool
    identity: tuple[int, int] | None = None  # device and inode of the file that is open

    def __post_init__(self) -> None:
        self.connection.text_factory = _lenient

    def close(self) -> None:
        self.connection.close()

    def started(self) -> bool:
        """True for a ledger, False for an empty file; anything else is an error."""
        with readable_errors(self.path):
            return _is_ledger(self.connection, self.path)

    def must_be_started(self) -> None:
        if not self.started():
            raise InputError(
                f"the file {self.path} is empty, there is no ledger in it: restore it, or, if nothing was ever released, "
                "create it (cbdp ledger create, or a cap and create=True)"
            )

    def rows(self, since: int = 0) -> list[Row]:
        """Rows in order; if some were seen before, from the last of them on."""
        with readable_errors(self.path):
            rows = self.connection.execute(
                "SELECT sequence, previous, entry, hash FROM entry WHERE sequence >= ? ORDER BY sequence",
                (since or -(2**63),),
            ).fetchall()
        if since and (not rows or rows[0][0] != since):
            raise LedgerError(
                f"entry {since} of the ledger {self.path} was removed while it was open; {RESTORE_ADVICE}"
            )
        return rows

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction that nobody else writes in. At its end what was written is in the file itself, and not in the log beside its name alone."""
        self.must_be_writable()
        with readable_errors(self.path):
            with _transaction(self.connection):
                self._must_be_in_place()
                yield
                self._must_be_in_place()
            with suppress(
                sqlite3.OperationalError
            ):  # somebody reads: then the log has it until they are done
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _must_be_in_place(self) -> None:
        """Refuse to write a file that lies no longer under its name: its log would be left behind, and what is in it forgotten."""
        check_name(self.path)
        if self.identity is not None and _file_identity(self.path) != self.identity:
            raise InputError(
                f"the ledger {self.path} was moved or replaced while it was open: put it back, with the files beside it that have its name, and try again"
            )

    def append(self, row: Row) -> None:
        self.connection.execute(
            f"PRAGMA user_version={_FORMAT_VERSION}"
        )  # whoever reads older forms only is told so
        self.connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", row)

    def must_be_writable(self) -> None:
        if not self.writable:
            raise InputError(f"the ledger {self.path} is open for reading only: use Ledger.open to charge it")

    def damage(self) -> str | None:
        """What SQLite finds wrong with the file, if anything; a changed schema is an error at once."""
        with readable_errors(self.path):
            _check_schema(self.connection, self.path)
            [(verdict,), *_] = self.connection.execute("PRAGMA integrity_check(1)").fetchall()
        return None if verdict == "ok" else str(verdict)


def check_name(file: Path) -> None:
    """Refuse a file whose log another name would not find: SQLite's log goes by the name, so that what one name wrote before a crash is not there for another.

    Proof: docs/proofs/ledger.md.
    """
    try:
        names = file.stat().st_nlink
    except OSError:
        return  # there is none yet
    if names > 1:
        raise InputError(
            f"the ledger {file} has {names} names (hard links), and a charge that is written under one of them may be missing under another after a crash. "
            f"Give it one name: while nobody uses it, cp -p {shlex.quote(str(file))} {shlex.quote(f'{file}.one')} && mv {shlex.quote(f'{file}.one')} {shlex.quote(str(file))}, and delete its other names "
            "(for a second place use a symbolic link)"
        )
    if _is_mount_point(file):
        raise InputError(
            f"the ledger {file} is mounted as a single file, and the log that belongs to it would stay behind in the container: mount the folder that holds the ledger "
            "(like docker run -v /srv/ledger:/ledger), and name the file in it"
        )


def _is_mount_point(file: Path) -> bool:
    """Whether this very file is mounted, as container systems do with single files."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return os.path.ismount(file)
    place = os.fsencode(file)
    return any(_unescaped(fields[4]) == place for fields in map(bytes.split, lines) if len(fields) > 4)


def _unescaped(text: bytes) -> bytes:
    """As the kernel writes paths: blanks and backslashes as octal numbers."""
    return re.sub(rb"\\([0-7]{3})", lambda digits: bytes([int(digits[1], 8)]), text)


def _file_identity(file: Path) -> tuple[int, int] | None:
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def create_private(file: Path, mode: int = OWNER_ONLY_MODE) -> int:
    """A handle of a file that is made, if it is not there, for its owner alone, whatever the umask. SQLite gives the files beside it the same permissions."""
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return os.open(file, os.O_RDONLY | os.O_CREAT, mode)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    return handle


def connect(file: Path, *, create: bool, timeout: float) -> Store:
    with readable_errors(file):
        if create:
            os.close(create_private(file))
        connection = sqlite3.connect(
            f"{file.as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=timeout,
            isolation_level=None,
        )
    return Store(file, connection, writable=True, identity=_file_identity(file))


def prepare(store: Store, first: Row | None, timeout: float) -> None:
    """Make the file ready to be charged; an empty one becomes a ledger with this first entry."""
    connection = store.connection
    if first is None:
        store.must_be_started()
    with readable_errors(store.path):
        if first is not None and not _is_ledger(connection, store.path):
            connection.execute("PRAGMA synchronous=EXTRA")
            _create_tables(store, first)
            sync_folder(store.path.parent)
        _use_wal(connection, store.path, timeout)
        for pragma in ("synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON"):
            connection.execute(f"PRAGMA {pragma}")
        # SQLite opens a read-only file without a word: find out by a write of nothing, not at the first charge.
        connection.execute("DELETE FROM entry WHERE FALSE")


def sync_folder(folder: Path) -> None:
    """Make the names of a folder's files durable, where the system lets a folder be synchronised."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def is_busy(error: sqlite3.Error) -> bool:
    return _sqlite_code(error) == sqlite3.SQLITE_BUSY


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the system into one line that says what to do."""
    try:
        yield
    except OSError as error:
        raise InputError(f"the ledger {path} cannot be used: {error.strerror}") from None
    except UnicodeError:  # SQLite quotes damaged text in its message, which Python then cannot read
        raise LedgerError(f"the file of the ledger {path} is damaged; {RESTORE_ADVICE}") from None
    except sqlite3.Error as error:
        raise _readable_error(error, path) from None


def _readable_error(error: sqlite3.Error, path: Path) -> LedgerError | InputError:
    code = _sqlite_code(error)
    if code == sqlite3.SQLITE_CORRUPT:
        return LedgerError(f"the file of the ledger {path} is damaged: {error}; {RESTORE_ADVICE}")
    permissions = "check the permissions of the file and of its folder"
    advice = {
        sqlite3.SQLITE_NOTADB: f"{path} is not a ledger: it is not an SQLite file",
        sqlite3.SQLITE_BUSY: f"the ledger {path} is in use by another process: try again, or set a longer timeout",
        sqlite3.SQLITE_READONLY: f"the ledger {path} cannot be written: {permissions}",
        sqlite3.SQLITE_CANTOPEN: f"the ledger {path} cannot be opened: {permissions}",
    }
    return InputError(advice.get(code, f"the ledger {path} cannot be used: {error}"))


def _sqlite_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _lenient(raw: bytes) -> str:
    """Text that was tampered with may not be UTF-8; the chain is to say so, not the decoder."""
    return raw.decode("utf-8", "surrogateescape")


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


def _create_tables(store: Store, first: Row) -> None:
    """Tables, marks and first entry in one transaction: a crash leaves an empty file or a whole ledger."""
    connection = store.connection
    with _transaction(connection):
        if _is_ledger(connection, store.path):
            return  # another process was faster
        for statement in LEDGER_SCHEMA.values():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        store.append(first)


def _is_ledger(connection: sqlite3.Connection, path: Path) -> bool:
    [(application, version, things)] = connection.execute(
        "SELECT a.application_id, v.user_version, (SELECT COUNT(*) FROM sqlite_master) "
        "FROM pragma_application_id AS a, pragma_user_version AS v"
    ).fetchall()
    if application == 0 and version == 0 and things == 0:
        return False
    if application != _APPLICATION_ID:
        raise InputError(f"{path} is not a ledger: it is the SQLite file of another program")
    if version > _FORMAT_VERSION:
        raise InputError(
            f"the ledger {path} has format {version}, this version of cbdp reads format {_FORMAT_VERSION}: update cbdp"
        )
    return True


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    statements = dict(
        connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type NOT IN ('table', 'index') OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        ).fetchall()
    )
    for name in [*LEDGER_SCHEMA, *statements]:
        if statements.get(name) != LEDGER_SCHEMA.get(name):
            state = "is missing" if name not in statements else "is not as it was created"
            raise LedgerError(
                f"the ledger {path} is broken: {name!r} of its schema {state}; {RESTORE_ADVICE}"
            )


def _use_wal(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Switch to write-ahead logging. SQLite does not wait for others here, so we do."""
    end = time.monotonic() + timeout
    while True:
        try:
            [(mode,)] = connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise InputError(
                f"the ledger {path} is on a disk that cannot keep a write-ahead log: move it to a local disk"
            )
        return


# Locks between processes, which the system drops when their holder ends, however it ends


def exclusive_lock(file: Path, mode: int = OWNER_ONLY_MODE) -> AbstractContextManager[None]:
    """Hold this lock file, waiting for whoever holds it now. Not re-entrant. It is made with these permissions, which are those of the ledger."""
    return _lock_by_flock(file, mode) if find_spec("fcntl") else _lock_by_sqlite(file)


@contextmanager
def _lock_by_flock(file: Path, mode: int) -> Iterator[None]:
    try:
        handle = _lock_file(file, mode)
    except OSError as error:
        raise _lock_error(file, error.strerror) from None
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()  # while it is held: whoever waits for it sees that it is gone and starts anew
        os.close(handle)


def _lock_file(file: Path, mode: int) -> int:
    import fcntl

    while True:
        handle = create_private(file, mode)
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
def _lock_by_sqlite(file: Path) -> Iterator[None]:
    """For systems without flock: a transaction held open on a file that stays empty and stays there."""
    try:
        connection = _begin_exclusive(file)
    except sqlite3.Error as error:
        raise _lock_error(file, error) from None
    with closing(connection):
        yield


def _begin_exclusive(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None, timeout=1.0)
    try:
        while not connection.in_transaction:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise
    except BaseException:
        connection.close()
        raise
    return connection


def _lock_error(file: Path, why: object) -> InputError:
    return InputError(f"cannot use the lock file {file}: {why}; check the permissions of its folder")


# Reading without a trace: a copy in memory, made so that no file appears beside the original


_MAX_TRIES = 50  # times that a file is read which others write meanwhile


def snapshot_in_memory(file: Path) -> Store:
    """A copy of the ledger in memory.

    Reading a file with a write-ahead log would create files beside it where there are none. So SQLite's locks are used
    only if its shared-memory file is there, as it is while anyone has the ledger open and after a crash. Without it the
    file is at rest and is read as it is, again if someone began to write meanwhile.
    """
    with readable_errors(file):
        memory = _copy_of_file(file)
    return Store(file, memory, writable=False)


def _copy_of_file(file: Path) -> sqlite3.Connection:
    for _ in range(_MAX_TRIES):
        before = _file_stamps(file)
        try:
            memory = _load_in_memory(file, before)
        except (sqlite3.Error, OSError):
            if _file_stamps(file) == before:
                raise
        else:
            if before["-shm"] or _file_stamps(file) == before:
                return memory
            memory.close()
        time.sleep(0.01)
    raise InputError(f"the ledger {file} changes too fast to be read: try again")


_FileStamps = dict[str, tuple[int, int, int] | None]  # size, time and identity of the files; None: not there


def _file_stamps(file: Path) -> _FileStamps:
    stamps: _FileStamps = {}
    for suffix in ("", "-wal", "-shm"):
        try:
            about = Path(f"{file}{suffix}").stat()
        except OSError:
            stamps[suffix] = None
        else:
            stamps[suffix] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return stamps


def _load_in_memory(file: Path, stamps: _FileStamps) -> sqlite3.Connection:
    if stamps["-shm"]:
        return _backup(f"{file.as_uri()}?mode=ro")
    if not stamps["-wal"] or stamps["-wal"][0] == 0:
        return _backup(f"{file.as_uri()}?immutable=1")
    # SQLite must replay the log somewhere: on a copy of file and log
    with tempfile.TemporaryDirectory() as folder:
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
