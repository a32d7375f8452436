"""What the tests of one folder share."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledgers import sound_ledger


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger at rest with every kind of entry. Tests change copies of it."""
    return sound_ledger(tmp_path_factory.mktemp("sound"))
