"""In a real notebook: a release, its tables, counts and intervals show as HTML, and plots as pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from released import release_of
from reported import Page
from spoken_about import FULL

from cbdp.release.release import Release

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

CELLS = (
    "import cbdp\nrelease = cbdp.load('out')\nrelease",
    "release.table('zone')",
    "release.counts('time')",
    "release.interval('time')",
    "release.plot.day();",
)


def _run(folder: Path) -> list[Any]:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(made, timeout=200, resources={"metadata": {"path": str(folder)}})
    return [cell["outputs"] for cell in client.execute()["cells"]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::ResourceWarning")
def test_a_notebook_shows_them(tmp_path: Path) -> None:
    """Run by a real kernel: what Jupyter would show holds the published numbers."""
    release = replace(release_of("constraint-based"), about=FULL)
    release.save(tmp_path / "out")
    whole, table, counts, interval, plot = _run(tmp_path)
    page = Page(whole[0]["data"]["text/html"]).text
    for part in (
        "Trips -- all of them",
        "Zürich & <around>",
        "March 2026",
        "ε = 1 for each trip",
        "origin.zone",
    ):
        assert part in page
    row = release.table("zone")[0]
    assert f"{row['count']:,}{row['low']:,}{row['high']:,}" in Page(table[0]["data"]["text/html"]).text
    assert f"06:00{release.counts('time')[0]:,}" in Page(counts[0]["data"]["text/html"]).text
    low, high = release.interval("time").at("07:00")
    assert f"07:00{low:,}{high:,}" in Page(interval[0]["data"]["text/html"]).text
    assert any("image/png" in output.get("data", {}) for output in plot)


def test_labels_stay_text() -> None:
    """Markup in a title or a label is shown, not run."""
    hostile = replace(FULL, title="<img src=x onerror=alert(1)>")
    shown = replace(release_of("laplace"), about=hostile)._repr_html_()
    assert "<img" not in shown
    assert "&lt;img" in shown


def test_a_person_s_bound_is_said(tmp_path: Path) -> None:
    """Where trips were left out, the reader hears it beside the number."""
    shown: Release = release_of("person")
    assert (
        "At most 3 trips of each person are counted: the true numbers may be higher." in shown._repr_html_()
    )
    assert "At most" not in release_of("laplace")._repr_html_()


def test_a_terminal_shows_three_lines() -> None:
    """What it is, what it promises, and its tables; not the whole recipe."""
    lines = repr(replace(release_of("constraint-based"), about=FULL)).splitlines()
    assert lines[0] == "Trips -- all of them (Zürich & <around> · March 2026)"
    assert lines[1].endswith("06:00–08:00 in 2 periods; differentially private, ε = 1 for each trip")
    assert lines[2] == "tables: total, time, zone, mode, singleton"
