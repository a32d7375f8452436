"""A small city to publish from."""

from __future__ import annotations

from pathlib import Path

import pytest
from publishing import write_inputs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with trips, stops and a configuration."""
    write_inputs(tmp_path)
    return tmp_path
