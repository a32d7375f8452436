"""The curator's own report measures what it says, and bears its mark."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from reported import Page, rush_hour
from small_city import plan_of, state_of

import cbdp
from cbdp.app import cli
from cbdp.app.internal import build_internal
from cbdp.errors import InputError
from cbdp.report import build
from cbdp.text import INTERNAL_WARNING


@pytest.fixture(scope="module")
def rush():
    return rush_hour()


@pytest.mark.slow
def test_internal_report_measures_the_errors(rush, tmp_path, monkeypatch):
    """Errors, coverage and misses are those against the truth; it bears its banner, and writes no file."""
    city, release, _ = rush
    truth = cbdp.count(city.trips, city.universe)
    monkeypatch.chdir(tmp_path)
    page = Page(build_internal(release, truth))
    assert list(tmp_path.iterdir()) == []
    assert page.text.count(INTERNAL_WARNING) == 2
    assert INTERNAL_WARNING == "INTERNAL – reveals private data – do not publish"
    assert f"True trips: {len(city):,}. Published: {release.total:,}." in page.text
    error = release.counts("zone") - truth.of(release.features, "zone")
    rms, largest = np.sqrt(np.mean(error**2)), np.abs(error).max()
    inside = release.intervals["zone"]
    exact = truth.of(release.features, "zone")
    covered = np.mean((inside.low <= exact) & (exact <= inside.high))
    row = re.search(r"zone\s*64(.*?)mode", page.text)[1]
    assert row.startswith(f"{rms:.3g}")
    assert f"{largest:,}" in row
    assert f"{100 * covered:.0f} %" in row
    worst = int(np.argmax(np.abs(error)))
    keys = release.features.partition("zone").keys()
    name = " · ".join(str(column[worst]) for column in keys.values())
    assert f"{name}{release.counts('zone')[worst]:,}{exact[worst]:,}" in page.text
    assert INTERNAL_WARNING not in build(release)


def test_internal_report_refuses_another_universe(rush):
    """Counts of other trip types are no truth of this release."""
    _, release, _ = rush
    other = cbdp.count(np.ones(2, dtype=np.int64), cbdp.Universe(origin=["A", "B"]))
    with pytest.raises(InputError, match="other trip types"):
        build_internal(release, other)


def test_internal_errors_of_types_count_the_zeros(rush):
    """Types that have neither published nor true trips are part of the mean."""
    city, release, _ = rush
    truth = cbdp.count(city.trips, city.universe)
    rms = np.sqrt(np.mean((release.counts("singleton") - truth.dense()) ** 2))
    assert f"singleton{67600:,}{rms:.3g}" in Page(build_internal(release, truth)).text


def test_the_command_keeps_private_counts_out_of_public_places(
    city: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inside a release at any depth, through a link, or under an innocent name it is refused; else it is marked."""
    plan = plan_of(city)
    plan.mechanism.simulate(np.ones(plan.universe.size, dtype=np.int64), 1).save(
        city / "published", simulation=True
    )
    (city / "link").symlink_to(city / "published" / "features")
    given = ["report", str(city / "published"), "--internal", str(city / "cbdp.toml")]
    before = state_of(city)
    for out, said in (
        ("published/internal.html", "lies in the release"),
        ("published/features/internal.html", "lies in the release"),
        ("link/internal.html", "lies in the release"),
        ("report.html", "use '.*report-internal.html'"),
    ):
        assert cli.main([*given, "--out", str(city / out)]) == 2
        assert re.search(said, capsys.readouterr().err)
    assert cli.main(given) == 2
    assert state_of(city) == before
    assert cli.main([*given, "--out", str(city / "report-internal.html")]) == 0
    assert INTERNAL_WARNING in capsys.readouterr().out
    assert INTERNAL_WARNING in (city / "report-internal.html").read_text("utf-8")
    assert cli.main(["report", str(city / "published"), "--out", str(city / "report.html")]) == 0
    assert INTERNAL_WARNING not in (city / "report.html").read_text("utf-8")
