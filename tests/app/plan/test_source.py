"""Where trips are: files by identity and state, databases by file or by URL without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbdp.counting.files import source_hash
from cbdp.errors import InputError


def test_a_database_file_counts_with_its_state(tmp_path: Path) -> None:
    """Another table, other content, and what is written but not yet in the file: each is another source."""
    file = tmp_path / "city.db"
    found = set()
    for content, table in ((b"a", "may"), (b"a", "june"), (b"ab", "june")):
        file.write_bytes(content)
        found.add(source_hash(f"duckdb://{file}::{table}"))
    for log in (".wal", "-wal"):
        (tmp_path / f"city.db{log}").write_bytes(b"more")
        found.add(source_hash(f"duckdb://{file}::june"))
    assert len(found) == 5
    assert source_hash(f"duckdb://{tmp_path}/../{tmp_path.name}/city.db::june") in found


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("postgres://you:hidden@host/city?schema=may::trips", True),
        ("postgres://host/city?token=1&schema=may&password=2::trips", True),
        ("postgres://me:secret@host:5433/city?schema=may::trips", False),
        ("postgres://me:secret@host/town?schema=may::trips", False),
        ("postgres://me:secret@host/city?schema=june::trips", False),
        ("postgres://me:secret@host/city?schema=may::taps", False),
        ("spark://me:secret@host/city?schema=may::trips", False),
    ],
)
def test_a_table_of_a_server_counts_by_its_address(other: str, same: bool) -> None:
    """Whoever logs in, with whatever password, finds the same trips there."""
    one = source_hash("postgres://me:secret@host/city?schema=may::trips")
    assert (source_hash(other) == one) is same


def test_files_that_are_gone_are_told(tmp_path: Path) -> None:
    """The source is looked at when the plan is made."""
    with pytest.raises(InputError, match="there is no file"):
        source_hash(str(tmp_path / "none.parquet"))
