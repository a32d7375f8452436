"""The package as it stands, read once."""

from __future__ import annotations

import pytest
from house.graph import Graph, build
from house.measure import House


@pytest.fixture(scope="session")
def graph() -> Graph:
    """Who imports whom."""
    return build()


@pytest.fixture(scope="session")
def house() -> House:
    """The sources, parsed."""
    return House.at()
