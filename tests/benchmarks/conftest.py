"""Fixtures of the harness's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.harness import data, registry
from benchmarks.harness.registry import Setup, prepare


@pytest.fixture(scope="module")
def tiny() -> registry.Case:
    return data.dense_city(30, stations=5, half_hours=2, mean=4)


@pytest.fixture
def plugged(tmp_path: Path) -> object:
    """The plug-in's names, registered for one test."""
    before = [(t, dict(t)) for t in (registry.DATA, registry.MECHANISMS, registry.METRICS)]
    yield
    for table, held in before:
        table.clear()
        table.update(held)
    registry._done.clear()
    prepare(Setup())
