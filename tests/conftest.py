"""What test modules share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.register_assert_rewrite("browsing")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium, kept for the tests of a module."""
    from browsing import launched

    with launched() as found:
        yield found
