"""A release's place in its series: in the manifest and back."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import pytest
from released import release_of

import cbdp
from cbdp.errors import InputError
from cbdp.release.series import InSeries, series_from

PLACE = InSeries(
    "days",
    2,
    "weekly",
    "2026-W10",
    dt.date(2026, 3, 2),
    dt.date(2026, 3, 8),
    "preliminary",
    ("a stop is new",),
)


def test_it_comes_back_from_the_manifest(tmp_path: Path) -> None:
    """With all it says; a release of no series says nothing."""
    release_of("laplace").save(tmp_path / "alone", simulation=True)
    assert "series" not in json.loads((tmp_path / "alone" / "manifest.json").read_text())
    assert cbdp.load(tmp_path / "alone").series is None
    replace(release_of("laplace"), series=PLACE).save(tmp_path / "one", simulation=True)
    assert cbdp.load(tmp_path / "one").series == PLACE
    plain = replace(PLACE, changes=())
    assert "changes" not in plain.json()
    assert series_from(json.loads(json.dumps(plain.json()))) == plain


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"first": "2026-02-30"}, "are not days"),
        ({"first": "2026-03-09"}, "is before the first"),
        ({"stage": "provisional"}, "schema at series/stage"),
        ({"further": 1}, "schema at series"),
    ],
)
def test_a_manifest_that_says_nonsense_is_refused(
    tmp_path: Path, change: dict[str, object], says: str
) -> None:
    """In one line."""
    replace(release_of("laplace"), series=PLACE).save(tmp_path / "one", simulation=True)
    manifest = tmp_path / "one" / "manifest.json"
    stated = json.loads(manifest.read_text())
    stated["series"] |= change
    manifest.write_text(json.dumps(stated))
    with pytest.raises(InputError, match=says):
        cbdp.load(tmp_path / "one")
