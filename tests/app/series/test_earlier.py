"""Earlier releases of a series as a prior for the next: which, stated by hash, made again from what is published."""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import Path

import numpy as np
import pytest
from daily_city import write_daily_city

import cbdp
from cbdp.app.series import run_series
from cbdp.config import read
from cbdp.errors import InputError
from cbdp.mechanisms import of
from cbdp.release.earlier import earlier_prior


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days, each of which learns from at most four days before it."""
    folder = write_daily_city(tmp_path_factory.mktemp("series"), days=10)
    _change(folder, "start = 2026-03-01", "start = 2026-03-01\nearlier = 4")
    run_series(read(folder / "cbdp.toml"), dt.date(2026, 3, 9), create_ledger=True)
    return folder


def _change(folder: Path, old: str, new: str) -> None:
    text = (folder / "cbdp.toml").read_text()
    assert text.count(old) == 1, old
    (folder / "cbdp.toml").write_text(text.replace(old, new))


def _release(city: Path, day: str) -> cbdp.Release:
    return cbdp.load(city / "releases" / day)


def test_the_recipe_states_the_releases_by_hash(city: Path) -> None:
    """The first has no prior; later ones name the days before them, of their own kind and of the other."""
    assert _release(city, "2026-03-01").prior is None
    stated = _release(city, "2026-03-09").recipe.settings["prior_source"]  # a Monday
    assert [r["period"] for r in stated["earlier_releases"]] == ["2026-03-05", "2026-03-06"]
    assert [r["period"] for r in stated["of_another_kind"]] == ["2026-03-07", "2026-03-08"]
    for named in (*stated["earlier_releases"], *stated["of_another_kind"]):
        manifest = city / "releases" / named["period"] / "manifest.json"
        assert named["manifest_sha256"] == hashlib.sha256(manifest.read_bytes()).hexdigest()
    assert 0 < stated["share_of_the_same_kind"] <= 1
    assert stated["effective_days"] > 1


def test_whoever_has_the_folders_can_make_it_again(city: Path) -> None:
    """The prior from the earlier folders, and the release from its own folder alone."""
    release = _release(city, "2026-03-09")
    alike, others = ([city / "releases" / f"2026-03-0{n}" for n in days] for days in ((5, 6), (7, 8)))
    prior = earlier_prior(alike, others)
    assert prior.weights == pytest.approx(release.prior)
    assert prior.source == release.recipe.settings["prior_source"]
    again = of(release).finish(release.measurements)
    assert again.index.tolist() == release.index.tolist()
    assert again.value.tolist() == release.value.tolist()


def test_the_promise_stays_as_it_was(city: Path) -> None:
    """Learning from what is published costs nothing: the same ε, and the same cost in the ledger, on every day."""
    first, last = _release(city, "2026-03-01"), _release(city, "2026-03-09")
    assert first.claim == last.claim
    assert np.array_equal([m.scale for m in first.measurements], [m.scale for m in last.measurements])


def test_mechanisms_without_a_prior_are_refused(tmp_path: Path) -> None:
    """One line, at the setting; nothing is spent."""
    folder = write_daily_city(tmp_path, days=2)
    _change(folder, "start = 2026-03-01", "start = 2026-03-01\nearlier = 4")
    _change(folder, 'name = "constraint-based"', 'name = "laplace"')
    _change(folder, 'budget = "uniform"\n', "")
    with pytest.raises(InputError, match="laplace has no use for earlier releases"):
        run_series(read(folder / "cbdp.toml"), dt.date(2026, 3, 1), create_ledger=True)
    assert not (folder / "releases" / "2026-03-01").exists()


def test_folders_of_another_universe_are_refused(city: Path, tmp_path: Path) -> None:
    """They cannot be added up; and no folders at all are nothing to learn from."""
    stops = cbdp.Universe(origin=["A", "B"], time=["am"])
    dag = cbdp.FeatureDag(stops, [cbdp.Feature("time", by="time")])
    cbdp.ConstraintBased(dag, 1).simulate(np.ones(2, int), 1).save(tmp_path / "other", simulation=True)
    with pytest.raises(InputError, match="another universe"):
        earlier_prior([city / "releases" / "2026-03-05", tmp_path / "other"])
    with pytest.raises(InputError, match="no earlier release"):
        earlier_prior([])
