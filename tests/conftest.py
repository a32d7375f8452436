"""What test modules share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("browsing")

HERE = Path(__file__).parent
SLOW = (HERE / "benchmarks", HERE / "trips" / "engines")  # runs of whole benchmarks; servers and clusters


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of some folders are slow."""
    for item in items:
        if any(folder in item.path.parents for folder in SLOW):
            item.add_marker("slow")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium, kept for the tests of a module."""
    from browsing import launched

    with launched() as found:
        yield found
