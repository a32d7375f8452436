"""Tables as people save them: separators, marks at the beginning, old encodings, grouped digits, signs for hidden counts."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from cbdp.audit import external_tables
from cbdp.errors import InputError

ROWS = "Départ;Heure ;Nombre\r\nHôtel;06:00;1 234\r\nGare;06:00;<5\r\n\r\n"
TOML = """
[[table]]
name = "by stop"
file = "stops.csv"
keys = { stop = "Départ", time = "Heure" }
count = "Nombre"
hidden_as = ["<5"]
threshold = 5
"""


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_text_is_read_as_it_was_saved(tmp_path: Path, separator: str, encoding: str) -> None:
    """Names without blanks around them, blank lines left out, hidden counts hidden: whatever wrote the file."""
    (tmp_path / "stops.csv").write_bytes(ROWS.replace(";", separator).encode(encoding))
    (tmp_path / "audit.toml").write_text(TOML, encoding="utf-8")
    table = external_tables.read(tmp_path)["by stop"]
    assert table.keys["stop"].tolist() == ["Hôtel", "Gare"]
    assert table.counts[0] == 1234
    assert table.shown.tolist() == [True, False]


def test_compressed_text(tmp_path: Path) -> None:
    """What gzip wrote is read like any other."""
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"stop,count\nA,3\n"))
    assert external_tables.read_columns(tmp_path / "t.csv.gz")["count"].tolist() == ["3"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("41", 41), (" 41 ", 41), ("1,234", 1234), ("12,345,678", 12345678), ("1\u00a0234", 1234), ("1’234", 1234), ("−3", -3),
        ("4.5", 4.5), (7, 7), ("1,2", None), ("many", None), ("12,34", None),
    ],
)  # fmt: skip
def test_counts_as_people_write_them(text: object, value: float | None) -> None:
    """Digits in groups are one number; what may be two things is none."""
    assert external_tables.parse_count(text) == value


def test_what_is_hidden_is_no_number() -> None:
    """An empty field, and a sign that the description names."""
    assert np.isnan([external_tables.parse_count(v, ["*", "n/a"]) for v in (None, "", "*", "n/a")]).all()  # type: ignore[arg-type]


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A workbook, a row with too many fields, an empty file, a sign that nothing explains: one line, with the cure."""
    (tmp_path / "audit.toml").write_text(TOML, encoding="utf-8")
    for text, words in (
        ("Départ;Heure;Nombre\nA;06:00;3;4\n", "line 2 has 4 fields, the first line has 3"),
        ("", "it has no rows"),
        ("Départ;Heure;Nombre\nA;06:00;c\n", r"say hidden_as = \['c'\]"),
    ):
        (tmp_path / "stops.csv").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=words):
            external_tables.read(tmp_path)
    (tmp_path / "stops.xlsx").write_bytes(b"PK")
    (tmp_path / "audit.toml").write_text(TOML.replace("stops.csv", "stops.xlsx"), encoding="utf-8")
    with pytest.raises(InputError, match="save the sheet as CSV"):
        external_tables.read(tmp_path)
