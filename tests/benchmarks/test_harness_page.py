"""The page that the benchmark harness makes, and mechanisms that plug in."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import paper
from benchmarks.harness import figures, page, sections, tables
from benchmarks.harness.registry import DATA

# The page

ADDED = """\
from benchmarks.harness import mechanism
import numpy as np

@mechanism("Halves", what="half of every count, and no privacy")
def halves(case, epsilon):
    def run(seed):
        return np.floor(case.truth / 2) + (seed % 2) * float(epsilon)
    return run
"""


@pytest.mark.slow
@pytest.mark.usefixtures("plugged")
def test_a_mechanism_in_a_few_lines_is_in_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One small file, named on the command line, and the mechanism stands in the page, the CSV and the figure."""
    pytest.importorskip("matplotlib")
    assert len(ADDED.splitlines()) < 20
    (tmp_path / "added.py").write_text(ADDED)
    drawn: dict[str, list[str]] = {}
    save = figures._save

    def seen(figure: object, path: Path) -> Path:
        legends = [axis.get_legend() for axis in figure.axes if axis.get_legend()]
        drawn[path.stem] = [text.get_text() for legend in legends for text in legend.get_texts()]
        for legend in legends:  # beside its axes, not over the data
            figure.canvas.draw()
            assert legend.get_window_extent().x0 >= legend.axes.get_window_extent().x1
            assert legend.get_window_extent().x1 <= figure.bbox.x1
        return save(figure, path)

    monkeypatch.setattr(figures, "_save", seen)
    out = tmp_path / "out"
    asked = ["--smoke", "--sections", "errors,overview", "--mechanisms", "Lap,H5,O5,Halves"]
    places = ["--out", str(out), "--store", str(tmp_path / "store"), "--with", str(tmp_path / "added.py")]
    assert paper.main([*asked, *places]) == 0
    text = (out / "benchmarks.md").read_text()
    assert re.search(r"^\| Halves \| \d", text, flags=re.MULTILINE)
    beside = [table.read_text() for table in (out / "benchmarks").glob("*.csv")]  # every table but the first
    assert sum("half of every count, and no privacy" in table for table in [text, *beside]) == 1
    rows = list(csv.DictReader(io.StringIO((out / "benchmarks.csv").read_text())))
    mine = {
        r["metric"]: r
        for r in rows
        if (r["mechanism"], r["data"], r["epsilon"]) == ("Halves", "weekday", "1")
    }
    assert mine["trips"]["runs"] == "2"
    truth = DATA["weekday"].load().truth
    expected = (truth // 2).sum() + len(
        truth
    ) / 2  # the mean of two runs, the second with one trip more per type
    assert float(mine["trips"]["mean"]) == pytest.approx(expected, rel=1e-5)
    assert "Halves" in drawn["errors-others"]
    assert drawn["errors"] == ["Lap", "H5", "O5", "all zeros"]
    whole = (out / "benchmarks.html").read_text()
    assert "<td>Halves</td>" in whole
    assert set(re.findall(r'src="([^:"]+):', whole)) == {"data"}
    assert not re.findall(r'(?:src|href)="https?:', whole)
    for name in drawn:
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "O5's error per type is below that of Lap, H3, H4 and H5: yes" in capsys.readouterr().out


def test_bad_options_are_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown names and impossible sizes end with exit code 2 and one line."""
    for asked in (
        ["--mechanisms", "O6"],
        ["--sections", "x"],
        ["--runs", "0"],
        ["--tntp", "no.tntp"],
        ["--memory", "0"],
    ):
        assert paper.main(asked) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_crossings_lie_between_the_points() -> None:
    """Two power laws cross where their formulas do; lines that do not cross have no crossing."""
    x = [10.0, 1.0, 0.1, 0.01]
    one = figures.Series("one", x, [3 * e**-0.5 for e in x])
    other = figures.Series("other", x, [e**-1 for e in x])
    assert sections.crossings(one, other) == [pytest.approx(1 / 9)]
    assert sections.crossings(one, figures.Series("", x, [2 * y for y in one.y])) == []


def test_every_built_in_line_looks_different() -> None:
    """No two of 24 lines share colour, marker and dashes; O5 is always black."""
    labels = [f"m{n}" for n in range(24)] + ["O5"]
    looks = [figures.style(label, labels) for label in labels]
    assert len({(s["color"], s["marker"], str(s["linestyle"])) for s in looks}) == 25
    assert looks[-1]["color"] == figures.style("O5", ["O5"])["color"] == "#000000"


def test_page_states_machine_and_versions(tmp_path: Path) -> None:
    """The machine's cores and the packages' versions are in the text, and text is escaped in HTML."""
    assert f"{os.cpu_count()} cores" in page.machine()
    assert f"numpy {np.__version__}" in page.versions()
    made = page.as_html([page.Text("a < b & `c`"), tables.Table(["x"], [["<td>"]])], "t")
    assert "a &lt; b &amp; <code>c</code>" in made
    assert "<td>&lt;td&gt;</td>" in made
