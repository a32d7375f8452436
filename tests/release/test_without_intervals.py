"""Counts that nothing measures have no interval, wherever a reader may look, and are told why."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from exported import PLACES, city_release

import cbdp
from cbdp.app import cli
from cbdp.errors import InputError
from cbdp.estimation.posterior import Posterior
from cbdp.release.export import export
from cbdp.report import build
from cbdp.report.series import build as series_page
from cbdp.report.series import period_of
from cbdp.transit.fleets import ZoneDemand, in_words

WHY = "no measured table adds up to"


@cache
def _hidden() -> cbdp.Release:
    """Types are treated as too many to list, and only a table by time is measured beside them."""
    made, _ = city_release()
    counts = np.arange(made.features.universe.size) % 7 * 9
    hiding = Posterior(revealed=3)
    mechanism = cbdp.ConstraintBased(
        made.features, 1, sparse=True, estimator=hiding, measured=["time", "singleton"]
    )
    return replace(mechanism.simulate(counts, 5), places=PLACES)


def test_a_feature_without_an_interval_is_an_error_that_says_why() -> None:
    """By itself; where all are asked for, those that have any are given."""
    release = _hidden()
    with pytest.raises(InputError, match=WHY):
        release.interval("zone")
    every = release.with_intervals()
    assert set(every.intervals) == {"total", "time"}
    assert "low" not in every.table("zone")
    assert build(every).startswith("<!doctype html>")


def test_the_screen_the_file_and_json_say_that_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dash, an empty cell, null; and the reason beside it."""
    place = str(tmp_path / "out")
    _hidden().with_intervals().save(place, simulation=True)
    asked = ["ask", place, "--by", "origin", "--share-of", "all"]
    assert cli.main(asked) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["origin", "count", "estimate", "low", "high", "share", "share_low", "share_high"]
    assert [row.split()[3:5] for row in rows[:4]] == [["–", "–"]] * 4
    assert WHY in rows[4]
    assert cli.main([*asked, "--format", "csv"]) == 0
    written = capsys.readouterr()
    assert {(row["low"], row["high"]) for row in csv.DictReader(io.StringIO(written.out))} == {("", "")}
    assert WHY in written.err
    assert cli.main([*asked, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {row["low"] for row in said["rows"]} == {None}
    assert all(type(row["count"]) is int for row in said["rows"])
    assert WHY in said["notes"][0]
    assert cli.main(["ask", place, "--by", "time", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["notes"] == []
    assert all(row["low"] <= row["count"] <= row["high"] for row in said["rows"])


def test_exports_with_intervals_are_refused_with_the_reason(tmp_path: Path) -> None:
    """Nothing is written; without intervals it works."""
    with pytest.raises(InputError, match=rf"{WHY} .* Export without intervals"):
        export(_hidden(), tmp_path / "with", "csv", level="zone", intervals=0.9)
    assert not (tmp_path / "with").exists()
    assert export(_hidden(), tmp_path / "without", "csv", level="zone").is_dir()


def test_single_types_have_intervals_where_they_are_known_above_a_floor_only() -> None:
    """Those that are not shown reach from zero to the floor and the reach of the noise above it."""
    release = _hidden()
    answer = release.ask(["origin", "destination", "time"])
    measured = next(m for m in release.measurements if m.feature == "singleton")
    half = measured.noise.half_width(0.9)
    shown = np.zeros(release.features.universe.size, dtype=bool)
    shown[measured.elements] = True
    assert 0 < shown.sum() < len(shown)
    floor = measured.floor[release.features.cells.partition.of_every_type()]
    assert (answer["low"][~shown] == 0).all()
    assert (answer["high"][~shown] == np.maximum(floor[~shown] + half, answer["count"][~shown])).all()
    noisy = measured.values
    assert (answer["high"][shown] == np.maximum(noisy + half, answer["count"][shown])).all()


def test_a_series_and_a_fleet_without_a_measured_total_say_so() -> None:
    """No width is made up for them."""
    made, _ = city_release()
    counts = np.arange(made.features.universe.size) % 7 * 9
    mechanism = cbdp.ConstraintBased(
        made.features, 1, sparse=True, measured=["singleton"], estimator="projection"
    )
    release = mechanism.simulate(counts, 5)
    days = [dt.date(2026, 3, n) for n in (2, 3)]
    periods = [period_of(release, day) for day in days]
    hidden = any(m.floor is not None for m in release.measurements)
    assert hidden == (periods[0].low is None)
    if hidden:
        page = series_page(periods)
        assert "no interval" in page
        assert "inf" not in page.split("</style>")[1].split("<script")[0].lower().replace("information", "")
    assert in_words(ZoneDemand(7, None, None)).startswith("7 published trips; no interval")
