"""Looking at a release of a series with the trips it was made from: only those of its period count."""

from __future__ import annotations

from pathlib import Path

import pytest
from daily_city import write_daily_city

from cbdp.app.audit.run import audit_release
from cbdp.app.cli import main


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_daily_city(tmp_path_factory.mktemp("city"), days=4)
    config = str(folder / "cbdp.toml")
    assert main(["series", "run", config, "--until", "2026-03-03", "--create-ledger"]) == 0
    return folder


@pytest.mark.parametrize("day", ["2026-03-01", "2026-03-03"])
def test_an_audit_counts_the_rows_of_the_period(city: Path, day: str) -> None:
    """With its trips, its configuration and its ledger, a release of a series contradicts nothing."""
    found = audit_release(city / "releases" / day, config=city / "cbdp.toml", trips=True)
    assert not [f.title for f in found.findings if f.verdict == "contradicts"]
    assert any(f.check == "ledger" and f.verdict == "clear" for f in found.findings)


def test_an_audit_with_the_rows_of_another_day_shows(city: Path, tmp_path: Path) -> None:
    """So that the test above could fail: the release of one day under the name of another."""
    import json
    import shutil

    copy = tmp_path / "2026-03-01"
    shutil.copytree(city / "releases" / "2026-03-02", copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["series"] |= {"period": "2026-03-01", "first": "2026-03-01", "last": "2026-03-01"}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    found = audit_release(copy, config=city / "cbdp.toml", trips=True)
    assert [f for f in found.findings if f.verdict == "contradicts"]


def test_an_internal_report_is_of_the_period(city: Path, tmp_path: Path) -> None:
    """It compares with the trips of that day."""
    out = tmp_path / "internal.html"
    release = str(city / "releases" / "2026-03-02")
    assert main(["report", release, "--internal", str(city / "cbdp.toml"), "--out", str(out)]) == 0
    assert out.exists()


def test_check_explains_a_release_of_the_series(city: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next that is to be made, and how far the series has got."""
    assert main(["check", str(city / "cbdp.toml")]) == 0
    said = capsys.readouterr().out
    assert "cap 3 per day, 60 per 30 days" in said
    assert "This is release 2026-03-04 of a series:" in said
    assert "3 are made" in said
