"""Charts and files of tables are what their marks and tables say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from building.bars import drawn
from building.docstrings import with_blocks

from benchmarks.harness.beside import tables_beside

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


def test_a_chart_of_a_file_beside_the_page(tmp_path: Path) -> None:
    """Drawn from its rows, as from a table of the page."""
    (tmp_path / "ways.csv").write_text("way,error\nours,2\ntheirs,8\n", "utf-8")
    mark = MARK.format(columns='["error"]', rows='{"theirs": "them"}').replace(
        '"table": 1', '"file": "ways.csv"'
    )
    assert ">8</text>" in drawn(mark, tmp_path)


def test_further_tables_of_a_result_page_are_files_beside_it(tmp_path: Path) -> None:
    """The first that fits on a screen stays; others become CSV with every number, and what links them stays when the page is written again."""
    page = tmp_path / "errors.md"
    long = TABLE + "| more | 1 | 2 |\n" * 20
    text = f"# Errors\n\n{long}\n## Ways\n\n{TABLE}\n## Others\n\n{TABLE}\n{TABLE}"
    made = tables_beside(text, page)
    assert made.count(TABLE) == 1
    assert "(errors/errors.csv): 22 rows" in made
    assert "(errors/others.csv): 2 rows" in made
    assert "(errors/others-2.csv): 2 rows" in made
    assert (tmp_path / "errors" / "others.csv").read_text(
        "utf-8"
    ) == "way,error,trips\nours,2,1000 ± 3\ntheirs,8,500\n"
    assert tables_beside(made, page) == made


def test_an_example_at_the_end_of_a_docstring_is_closed() -> None:
    """Also where no blank line follows."""
    assert with_blocks("Adds.\n\n>>> 1\n1") == "Adds.\n\n```pycon\n>>> 1\n1\n```"
