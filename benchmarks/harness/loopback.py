"""A Spark cluster of this machine's own: a standalone master and workers as processes on 127.0.0.1, and executors to be killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
PATIENCE = 150.0  # seconds in which a process must answer
# for processes that live briefly, of classes that are Spark's and not a stranger's
QUICK = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def missing() -> str | None:
    """Why no cluster can be started here; None if one can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "no PySpark: pip install 'cbdp[spark]'"
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "no Java: apt-get install openjdk-17-jre-headless"
    return None


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    master: str
    folder: Path


@contextmanager
def cluster(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """A master and workers; the processes, and what they wrote, are gone afterwards."""
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as made:
        folder, port = Path(made), free_port()
        master = f"spark://{LOOPBACK}:{port}"
        where = ("--host", LOOPBACK, "--webui-port", "0")

        def start(name: str, *args: str) -> None:
            started.append(daemon(folder / f"{name}.log", *args))

        try:
            start("master", "org.apache.spark.deploy.master.Master", *where, "--port", str(port))
            wait(lambda: listens(port), "Spark's master did not start")
            for w in range(workers):
                size = ("--cores", str(cores), "--memory", memory, "--work-dir", str(folder / f"work{w}"))
                start(f"worker{w}", "org.apache.spark.deploy.worker.Worker", *where, *size, master)
            logs = [folder / f"worker{w}.log" for w in range(workers)]
            wait(
                lambda: all("Successfully registered" in log.read_text() for log in logs),
                "Spark's workers did not register",
            )
            yield Cluster(master, folder)
        finally:
            for process in reversed(started):  # workers end their executors
                process.terminate()
            for process in started:
                process.wait(timeout=PATIENCE)


def daemon(log: Path, *args: str, memory: str = "256m") -> subprocess.Popen[bytes]:
    """A process of Spark's, started by the scripts that PySpark brings along."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with log.open("wb") as file:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *args],
            env=environment() | {"SPARK_DAEMON_MEMORY": memory},
            stdout=file,
            stderr=file,
            cwd=log.parent,
        )


def environment() -> dict[str, str]:
    """Of processes that are to know this machine as 127.0.0.1, and to read nobody's Spark configuration."""
    import pyspark

    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    home = str(Path(pyspark.__file__).parent)
    return kept | {
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PYSPARK_PYTHON": sys.executable,
    }


def session(master: str, **settings: Any) -> Any:
    """A session on the cluster, with executors as if each had a machine of its own: what a lost one wrote is lost."""
    from pyspark.sql import SparkSession

    os.environ |= {
        name: value for name, value in environment().items() if name.startswith(("SPARK_", "PYSPARK_"))
    }
    usual = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "512m",
        "spark.executor.memory": "640m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.shuffle.readHostLocalDisk": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master(master).appName("cbdp")
    for name, value in (usual | settings).items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()


def executors(application: str) -> list[int]:
    """The process ids of an application's executors."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended meanwhile
                continue
            named = b"CoarseGrainedExecutorBackend" in b" ".join(line) and application.encode() in line
            if named and line[0].endswith(b"java"):
                found.append(int(entry.name))
    return sorted(found)


def await_executors(spark: Any, number: int) -> list[int]:
    application = spark.sparkContext.applicationId
    wait(lambda: len(executors(application)) >= number, f"Spark has fewer than {number} executors")
    return executors(application)


class Killer(threading.Thread):
    """Sends SIGKILL to one executor when a stage has done part of its tasks: the nth of those that have so many of them."""

    def __init__(self, spark: Any, tasks: int, nth: int = 1, share: float = 0.3) -> None:
        super().__init__(daemon=True)
        self._tracker = spark.sparkContext.statusTracker()
        self._application = spark.sparkContext.applicationId
        self._tasks, self._nth, self._share = tasks, nth, share
        self._seen: set[int] = set()
        self._over = threading.Event()
        self.killed: int | None = None
        self.done = ""  # what the stage had done by then

    def run(self) -> None:
        while self.killed is None and not self._over.wait(0.01):
            for stage in self._tracker.getActiveStageIds():
                info = self._tracker.getStageInfo(stage)
                if info is not None and info.numTasks == self._tasks:
                    self._seen.add(stage)
                    if len(self._seen) >= self._nth and self._part_done(info):
                        self._kill(info)
                        break

    def _part_done(self, info: Any) -> bool:
        return bool(self._share * info.numTasks <= info.numCompletedTasks < 0.8 * info.numTasks)

    def _kill(self, info: Any) -> None:
        found = executors(self._application)
        if len(found) > 1:
            os.kill(found[0], signal.SIGKILL)
            self.killed, self.done = found[0], f"{info.numCompletedTasks} of {info.numTasks} tasks"

    def stop(self) -> None:
        self._over.set()
        self.join()

    def repeated(self) -> tuple[int, int]:
        """How many tasks failed with the executor, and how many stages had to be begun anew."""
        later = range(min(self._seen), max(self._seen) + 100)
        infos = [info for stage in later if (info := self._tracker.getStageInfo(stage)) is not None]
        return sum(info.numFailedTasks for info in infos), sum(info.currentAttemptId for info in infos)


def free_port() -> int:
    """One that is free, and below those that systems give to connections: so that none gets it before it is used."""
    for port in random.sample(range(20_000, 32_000), 200):
        with socket.socket() as asked:
            try:
                asked.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free on this machine")


def listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex((LOOPBACK, port)) == 0


def wait(ready: Any, message: str) -> None:
    until = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > until:
            raise RuntimeError(message)
        time.sleep(0.1)
