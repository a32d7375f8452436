"""Loading a release: it comes back as it was, and goes on working."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from any_release import releases
from hypothesis import given, settings
from released import MECHANISMS, bytes_of, jsonschema, release_of, same, same_release

import cbdp
from cbdp import mechanisms
from cbdp.errors import InputError
from cbdp.release.files import load
from cbdp.release.manifest import manifest_schema
from cbdp.release.release import Release
from cbdp_features.places import Stops


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(releases())
def test_any_release_comes_back_as_it_was(release: Release) -> None:
    """Random universes, features, measurements, estimates, tables, intervals and claims survive, and a second save too."""
    with tempfile.TemporaryDirectory() as place:
        saved = release.save(f"{place}/one")
        back = load(saved.path)
        same_release(release, back)
        assert (
            back.manifest == saved.manifest == json.loads((saved.path / "manifest.json").read_text("utf-8"))
        )
        back.save(f"{place}/two")
        assert bytes_of(Path(place, "one")) == bytes_of(Path(place, "two"))


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_s_release_comes_back(name: str, tmp_path: Path) -> None:
    """Save and load change nothing; the manifest fits its schema; saved again, every byte is the same."""
    release = release_of(name)
    saved = release.save(tmp_path / "one", ledger={"head": "ab" * 32})
    jsonschema.Draft202012Validator(manifest_schema()).validate(saved.manifest)
    back = load(tmp_path / "one")
    same_release(release, back)
    assert back.manifest["ledger"]["head"] == "ab" * 32
    again = release.save(tmp_path / "two", ledger={"head": "ab" * 32})
    third = back.save(tmp_path / "three")
    assert bytes_of(again.path) == bytes_of(saved.path) == bytes_of(third.path)
    assert again.sha256 == saved.sha256 == hashlib.sha256(bytes_of(saved.path)["manifest.json"]).hexdigest()


@pytest.mark.parametrize(
    ("per", "name"), [("day", "User-day"), ("month", "User-month"), ("release", "User-level")]
)
def test_a_day_of_a_person_has_its_name_and_folders_with_the_old_one_load(
    tmp_path: Path, per: str, name: str
) -> None:
    """Versions up to 0.2 called it like a person, whatever the period; any other word disagrees with the files."""
    release = release_of("person")
    claim = replace(release.claim, unit=cbdp.Person("card", 3, per=per))
    saved = replace(release, claim=claim).save(tmp_path / "out")
    assert saved.manifest["deployment"]["privacy_loss"]["privacy_unit"] == name
    manifest = tmp_path / "out" / "manifest.json"
    text = manifest.read_text("utf-8")
    assert text.count(f'"privacy_unit": "{name}"') == 1
    manifest.write_text(text.replace(f'"privacy_unit": "{name}"', '"privacy_unit": "User-level"'), "utf-8")
    assert load(tmp_path / "out").manifest["deployment"]["privacy_loss"]["privacy_unit"] == name
    manifest.write_text(text.replace(f'"privacy_unit": "{name}"', '"privacy_unit": "Trip-level"'), "utf-8")
    with pytest.raises(InputError, match="disagree about 'deployment'"):
        load(tmp_path / "out")


def test_places_come_back(tmp_path: Path) -> None:
    """Ids of any kind, coordinates with gaps, and zones."""
    places = Stops((1, 2), ("one", "zwölf"), np.array([42.25, np.nan]), np.array([-83.5, np.nan]), ("n", "s"))
    release = replace(release_of("laplace"), places=places)
    release.save(tmp_path / "out")
    same_release(release, load(tmp_path / "out"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["constraint-based", "prior", "target", "paper", "sparse posterior"])
def test_an_estimate_is_audited_with_the_estimator_that_made_it(name: str, tmp_path: Path) -> None:
    """Made again it agrees, and so do the trips; with a noisy count changed it does not."""
    release_of(name).save(tmp_path / "out")
    back = cbdp.load(tmp_path / "out")
    again = mechanisms.of(back).finish(back.measurements)
    scale = 1e-9 * (1 + back.estimate.counts("total")[0])
    assert np.abs(again.estimate.counts("singleton") - back.estimate.counts("singleton")).max() <= scale
    assert same(again.index, back.index)
    assert same(again.value, back.value)
    *rest, last = back.measurements
    assert last.feature == "singleton"
    changed = replace(last, values=last.values + 40 * (np.arange(len(last.values)) == 3))
    other = mechanisms.of(back).finish([*rest, changed])
    assert np.abs(other.estimate.counts("singleton") - back.estimate.counts("singleton")).max() > 1


def test_a_loaded_release_makes_further_intervals(tmp_path: Path) -> None:
    """From its recipe alone, the same that the mechanism which made it makes."""
    release = release_of("paper")
    release.save(tmp_path / "out")
    fresh, back = release.interval("zone", 0.5), cbdp.load(tmp_path / "out").interval("zone", 0.5)
    assert same(fresh.low, back.low)
    assert same(fresh.high, back.high)


def test_intervals_are_published_computed_or_refused(tmp_path: Path) -> None:
    """A release knows those it has and works out others from what was measured, also without its mechanism; what was not measured has none."""
    release = release_of("constraint-based")
    assert release.interval("zone", 0.9).low is release.intervals["zone"].low
    wide, narrow = release.interval("time", 0.95), release.interval("time", 0.5)
    assert (wide.low <= narrow.low).all()
    assert (wide.high >= narrow.high).all()
    with pytest.raises(InputError, match="unknown feature 'none'"):
        release.interval("none", 0.9)
    release.save(tmp_path / "out")
    back = load(tmp_path / "out")
    assert same(back.interval("zone", 0.9).high, release.intervals["zone"].high)
    assert same(back.interval("zone", 0.5).high, release.interval("zone", 0.5).high)
    bare = replace(back, intervals={}, measurements=[])
    with pytest.raises(InputError, match="no measured table adds up to them"):
        bare.interval("zone", 0.9)
    assert bare.with_intervals(0.5).intervals == {}
