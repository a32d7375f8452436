"""Folders of tables that an audit.toml describes, and every mistake in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacked_tables import only

from cbdp.audit import consistency, detection, differencing, external_tables
from cbdp.audit.findings import worst
from cbdp.errors import InputError
from cbdp.privacy.noise import noise_distribution

DESCRIPTION = """
epsilon = 8
[[table]]
name = "both"
file = "both.csv"
keys = ["tap", "time", "loc"]
noise = { law = "rounded-laplace", scale = 1.4 }
threshold = 18
zeros = "skipped"
cells = "CELLS"
[[table]]
name = "time"
file = "time.parquet"
keys = { tap = "Tap", time = "Time" }
count = "n"
noise = { law = "rounded-laplace", scale = 1.4 }
threshold = 18
zeros = "skipped"
[[equal]]
first = { table = "both", where = { tap = "on", loc = "Manly Wharf" } }
second = { table = "both", where = { tap = "off", loc = "Circular Quay No. 3 Wharf" } }
shift = { time = 30 }
"""
BOTH = """tap,time,loc,count
off,00:00,Circular Quay No. 3 Wharf,41
off,00:00,Manly Wharf,91
off,07:15,Circular Quay No. 3 Wharf,86
on,06:45,Manly Wharf,88
"""
CELLS = BOTH.replace(",count", "").replace(",41", "").replace(",91", "").replace(",86", "").replace(",88", "")


def folder(at: Path, *, text: str = DESCRIPTION, cells: str = "cells.csv") -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    at.mkdir(exist_ok=True)
    (at / "audit.toml").write_text(text.replace("CELLS", cells), encoding="utf-8")
    (at / "both.csv").write_text(BOTH, encoding="utf-8")
    (at / "cells.csv").write_text(CELLS + "off,00:00,Cremorne Point Wharf\n", encoding="utf-8")
    rows = {"Tap": ["off", "off", "on"], "Time": ["00:00", "07:15", "06:45"], "n": [150, 85, 90]}
    parquet.write_table(pa.table(rows), at / "time.parquet")
    return at


def test_a_described_folder_is_attacked(tmp_path: Path) -> None:
    """CSV and Parquet are read by their description; the assessment's rows give the secret ferry and the Manly pair."""
    published = external_tables.read(folder(tmp_path))
    assert published.epsilon == 8
    [pair] = published.equal
    assert published["both"].label(int(pair.first_rows[0])) == "both: tap on, time 06:45, loc Manly Wharf"
    assert published["both"].counts[pair.second_rows].tolist() == [86]
    [found] = [p for p in differencing.identified_counts(published) if p.informative]
    assert found.cells == ("both: tap off, time 00:00, loc Cremorne Point Wharf",)
    assert found.estimate == pytest.approx(18)
    assert worst(detection.attack(published)) == "contradicts"
    assert only(consistency.attack(published)).verdict == "clear"


@pytest.mark.parametrize(("cells", "hidden"), [("listed", 0), ("some", 0), ("product", 8), ("cells.csv", 1)])
def test_which_cells_there_are(tmp_path: Path, cells: str, hidden: int) -> None:
    """A table lists all its cells, or some, or has a cell for each combination of labels, or for each of a list."""
    table = external_tables.read(folder(tmp_path, cells=cells))["both"]
    assert int((~table.shown).sum()) == hidden
    assert table.closed == (cells != "some")


WRONG = {
    "no column 'place'": ('keys = ["tap", "time", "loc"]', 'keys = ["tap", "time", "place"]'),
    "unknown law": ('law = "rounded-laplace"', 'law = "gauss"'),
    "which is not known": ("threshold = 18", "treshold = 18"),
    "not in": ('file = "both.csv"', 'file = "none.csv"'),
    "are 'kept'": ('zeros = "skipped"', 'zeros = "kept"'),
    "epsilon is": ("epsilon = 8", "epsilon = -1"),
    "no row of 'both'": ('loc = "Manly Wharf"', 'loc = "Nowhere"'),
    "no table 'all'": ('first = { table = "both"', 'first = { table = "all"'),
    "cannot be shifted": (
        "shift = { time = 30 }",
        "shift = { time = 30 }\n[[sum]]\ntotal = 'time'\npart = 'none'",
    ),
    "give a list of columns": ('keys = ["tap", "time", "loc"]', 'keys = "tap"'),
    "is 'high': give": ("scale = 1.4", "scale = 'high'"),
    "leave the scale out": ('law = "rounded-laplace"', 'law = "none"'),
    "hidden of 'both' are 'large'": ("threshold = 18", 'threshold = 18\nhidden = "large"'),
    "rounded of 'both' is 0": ("threshold = 18", "threshold = 18\nrounded = 0"),
    "hidden_as is": ("threshold = 18", 'threshold = 18\nhidden_as = "*"'),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_description_is_one_clear_line(tmp_path: Path, words: str) -> None:
    """Every mistake is our error, names the file and what to change, and is no traceback."""
    old, new = WRONG[words]
    expected = "no table 'none'" if "none'" in new and "sum" in new else words
    with pytest.raises(InputError, match=expected) as caught:
        external_tables.read(folder(tmp_path, text=DESCRIPTION.replace(old, new)))
    assert "audit.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """A missing description, text that is no TOML, counts that are no numbers and labels that never meet are refused."""
    with pytest.raises(InputError, match="can be read in"):
        external_tables.read(tmp_path)
    made = folder(tmp_path)
    (made / "both.csv").write_text(BOTH.replace("41", "many"), encoding="utf-8")
    with pytest.raises(InputError, match="row 1 is 'many', which is not a number"):
        external_tables.read(made)
    sums = DESCRIPTION + '[[sum]]\ntotal = "time"\npart = "both"\nmatch = { tap = "loc", time = "time" }\n'
    with pytest.raises(InputError, match="written alike"):
        external_tables.read(folder(tmp_path, text=sums))
    (made / "audit.toml").write_text("[[table", encoding="utf-8")
    with pytest.raises(InputError, match="at the end of an array"):
        external_tables.read(made)
    (folder(tmp_path) / "cells.csv").write_text("tap,time,loc\non,06:45,Manly Wharf\n", encoding="utf-8")
    with pytest.raises(InputError, match="not among the cells"):
        external_tables.read(tmp_path)


def test_declared_sums_are_followed(tmp_path: Path) -> None:
    """Sums may be declared with other names, and tables that share keys by accident kept apart."""
    declared = DESCRIPTION + '[[sum]]\ntotal = "time"\npart = "both"\n'
    [found] = external_tables.read(folder(tmp_path, text=declared)).relations
    assert found.rows.tolist() == [0, 0, 1, 2, 0]
    assert external_tables.read(folder(tmp_path, text="sums = 'none'\n" + DESCRIPTION)).relations == ()


@pytest.mark.parametrize(
    ("said", "law"),
    [
        ("laplace", "laplace"),
        ("discrete-laplace", "geometric"),
        ("rounded-laplace", "rounded"),
        ("geometric", "geometric"),
        ("rounded", "rounded"),
    ],
)
def test_laws_go_by_their_common_names_and_by_our_own(tmp_path: Path, said: str, law: str) -> None:
    """Either way the table's noise is the one law of that name; a scale of 0 says that counts are exact."""
    text = DESCRIPTION.replace("rounded-laplace", said)
    assert external_tables.read(folder(tmp_path, text=text))["both"].noise == noise_distribution(law, 1.4)
    exact = external_tables.read(folder(tmp_path, text=text.replace("scale = 1.4", "scale = 0")))[
        "both"
    ].noise
    assert exact is not None
    assert (exact.variance(), exact.reaches(1)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("said", "off"), [("1", 0), ("5", 2), ("10", 5), ("{ to = 5 }", 2), ("{ to = 5, at_random = true }", 4)]
)
def test_exact_and_rounded_counts_are_declared(tmp_path: Path, said: str, off: float) -> None:
    """The law "none" needs no scale; to the nearest multiple a count is off by half of it, at random by less than the whole."""
    text = DESCRIPTION.replace(
        '{ law = "rounded-laplace", scale = 1.4 }', f'{{ law = "none" }}\nrounded = {said}'
    )
    table = external_tables.read(folder(tmp_path, text=text))["both"]
    assert table.bounded
    assert table.rounding == off


def test_a_description_loads_no_code(tmp_path: Path) -> None:
    """A law is named, not pointed at: somebody else's folder does not choose which module is imported."""
    with pytest.raises(InputError, match="unknown law of noise 'evil:Law'"):
        external_tables.read(folder(tmp_path, text=DESCRIPTION.replace("rounded-laplace", "evil:Law")))
