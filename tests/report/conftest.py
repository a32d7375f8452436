"""What tests of the report share."""

from __future__ import annotations

import pytest
from reported import rush_hour


@pytest.fixture(scope="module")
def rush():
    """The built-in city's rush hour, a release of it with intervals, and its stops."""
    return rush_hour()
