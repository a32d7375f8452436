"""What the tests of `cbdp.app` share."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_city import write_city


@pytest.fixture
def city(tmp_path: Path) -> Path:
    """A folder with trips, stops and a configuration."""
    return write_city(tmp_path)
