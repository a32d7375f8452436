"""Charts and folded tables are what their marks and tables say."""

from __future__ import annotations

import re

import pytest
from building.bars import drawn
from building.collapse import folded
from building.docstrings import with_blocks

TABLE = "| way | error | trips |\n|---|---:|---:|\n| ours | 2 | 1,000 ± 3 |\n| theirs | 8 | 500 |\n"
MARK = '<!-- bars: {{"table": 1, "columns": {columns}, "rows": {rows}, "title": "Errors"}} -->\n\n'


def test_bars_are_as_long_as_the_numbers_of_the_table() -> None:
    """Four times the error, four times the bar; labels are those of the mark."""
    page = drawn(MARK.format(columns='["error"]', rows='{"ours": "us", "theirs": "them"}') + TABLE)
    widths = [float(w) for w in re.findall(r'<rect x="190" y="\d+" width="([\d.]+)"', page)]
    assert widths[1] == pytest.approx(4 * widths[0])
    assert [">us<" in page, ">them<" in page, "Errors" in page] == [True] * 3
    assert page.endswith(TABLE)


def test_several_columns_have_a_legend() -> None:
    """A colour for each, named."""
    page = drawn(MARK.format(columns='["error", "trips"]', rows='{"ours": "us"}') + TABLE)
    assert ">error</text>" in page
    assert ">1,000</text>" in page


@pytest.mark.parametrize(("columns", "rows"), [('["x"]', '{"ours": "us"}'), ('["error"]', '{"x": "us"}')])
def test_a_mark_that_names_what_no_table_has_stops_the_build(columns: str, rows: str) -> None:
    """With the mark, and what is missing."""
    with pytest.raises(LookupError, match=r"has no \['x'\]: mend the mark"):
        drawn(MARK.format(columns=columns, rows=rows) + TABLE)


def test_only_long_tables_fold() -> None:
    """A short one stays; of a long one every row is kept, inside the block."""
    long = TABLE + "| more | 1 | 2 |\n" * 20
    assert folded(TABLE) == TABLE
    made = folded(f"Before.\n\n{long}\nAfter.\n")
    assert '??? note "Table of 22 rows: way, error, trips"' in made
    assert made.count("    | more | 1 | 2 |") == 20
    assert made.startswith("Before.\n\n???")
    assert made.endswith("\nAfter.\n")


def test_an_example_at_the_end_of_a_docstring_is_closed() -> None:
    """Also where no blank line follows."""
    assert with_blocks("Adds.\n\n>>> 1\n1") == "Adds.\n\n```pycon\n>>> 1\n1\n```"
