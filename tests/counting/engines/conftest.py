"""Servers that the engines' tests share: each is started once, and only where it is asked for, and ended with the module."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from counting.engines import postgres

from benchmarks.harness import loopback


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server."""
    with postgres.running() as found:
        yield found


@pytest.fixture(scope="module")
def cluster() -> Iterator[loopback.Cluster]:
    """A Spark cluster of a master and two workers, as processes of their own."""
    if reason := loopback.missing():
        pytest.skip(reason)
    with loopback.cluster() as found:
        yield found


@pytest.fixture(scope="module")
def spark(cluster: loopback.Cluster) -> Iterator[Any]:
    """A session on the cluster, of two executors, that logs its events and serves Spark Connect; its settings are such as must not matter."""
    events = cluster.folder / "events"
    events.mkdir()
    before, heard = dict(os.environ), signal.getsignal(signal.SIGINT)  # PySpark takes over both
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark has remarks on pandas and on its own modules
        made = loopback.session(
            cluster.master,
            **{
                "spark.sql.shuffle.partitions": 2,
                "spark.shuffle.io.maxRetries": 1,  # a lost executor does not come back: 15 seconds need not pass
                "spark.shuffle.io.retryWait": "100ms",
                "spark.driver.extraJavaOptions": loopback.QUICK,
                "spark.executor.extraJavaOptions": loopback.QUICK,
                "spark.sql.codegen.wholeStage": "false",  # rows are few: compiling would take longer than counting
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
                "spark.sql.session.timeZone": "Asia/Kathmandu",
                "spark.sql.parser.escapedStringLiterals": "true",
                "spark.sql.autoBroadcastJoinThreshold": "-1",
                "spark.eventLog.enabled": "true",
                "spark.eventLog.compress": "false",
                "spark.eventLog.dir": f"file://{events}",
                "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                "spark.connect.grpc.binding.address": loopback.LOOPBACK,
                "spark.connect.grpc.binding.port": loopback.free_port(),
            },
        )
        loopback.await_executors(made, 2)
    yield made
    with warnings.catch_warnings(action="ignore"):  # what it leaves open is not to be told in another test
        made.stop()
        gc.collect()
    signal.signal(signal.SIGINT, heard)
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)
