"""Servers that the engines' tests share: each is started once, and only where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trips.engines import postgres


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server."""
    with postgres.running() as found:
        yield found
