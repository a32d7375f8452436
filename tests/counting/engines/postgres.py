"""A PostgreSQL server of the tests' own: made in a new folder, on loopback, on a free port, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.harness import loopback

PASSWORD = "correct horse"  # noqa: S105 - of a server that lives for a minute


@dataclass(frozen=True)
class Server:
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"postgres://rider:{PASSWORD.replace(' ', '+')}@127.0.0.1:{self.port}/rides"


@contextmanager
def running() -> Iterator[Server]:
    """A running server that logs every statement; skips where there is none to run."""
    binaries, runner = _binaries(), _runner()
    if binaries is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    if runner is None:
        pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres' to run it as")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if runner:
            shutil.chown(folder, "postgres")
        data, secret, port = folder / "data", folder / "password", loopback.free_port()
        secret.write_text(PASSWORD)
        secret.chmod(0o644)

        def run(name: str, *args: str) -> None:
            subprocess.run(
                [*runner, str(binaries / name), *args],
                check=True,
                capture_output=True,
                timeout=loopback.PATIENCE,
                cwd=folder,
            )

        run(
            "initdb",
            "-D",
            str(data),
            "-U",
            "rider",
            "-A",
            "scram-sha-256",
            f"--pwfile={secret}",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-N",
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c log_statement=all -c log_parameter_max_length=-1"
        run("pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-w", "-t", "120", "-o", options, "start")
        try:
            _create(port)
            yield Server(port, folder / "log")
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def _create(port: int) -> None:
    import psycopg

    where = f"host=127.0.0.1 port={port} user=rider dbname=postgres"
    with psycopg.connect(where, password=PASSWORD, autocommit=True) as connection:
        connection.execute("CREATE DATABASE rides")


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((p for p in reversed(places) if (p / "initdb").exists()), None)


def _runner() -> list[str] | None:
    """What goes before a command so that it does not run as root; None where that cannot be done."""
    if os.geteuid() != 0:
        return []
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return None
    return ["runuser", "-u", "postgres", "--"] if shutil.which("runuser") else None
