"""Folders that were changed: what is wrong is named, and is never a traceback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from released import made_by, release_of

import cbdp
from cbdp.errors import InputError
from cbdp.release.files import load


def test_files_that_do_not_match_the_manifest_are_named(tmp_path: Path) -> None:
    """A changed byte, a missing file and an extra one, for every file of a release."""
    saved = release_of("sparse").save(tmp_path / "out")
    for name in saved.manifest["files"]:
        path = saved.path / name
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        with pytest.raises(InputError, match=f"{name!r}.*does not match"):
            load(saved.path)
        path.unlink()
        with pytest.raises(InputError, match=f"{name!r}.*is missing"):
            load(saved.path)
        path.write_bytes(content)
    for name in ("more.txt", "features/more.parquet", ".hidden"):
        (saved.path / name).write_text("x")
        with pytest.raises(InputError, match=f"{name!r} does not belong"):
            load(saved.path)
        (saved.path / name).unlink()
    load(saved.path)


def test_tables_that_contradict_the_manifest_are_damage_not_a_traceback(tmp_path: Path) -> None:
    """Even when hashes are not checked, files of another release are one clear error."""
    one = release_of("constraint-based").save(tmp_path / "one").path
    dag = cbdp.FeatureDag(cbdp.Universe(origin=["X"], destination=["Y"], time=["Z"]), [])
    other = made_by(cbdp.ConstraintBased(dag, 1)).save(tmp_path / "two").path
    for name in ("trips.parquet", "features/singleton.parquet", "universe/origin.parquet"):
        content = (one / name).read_bytes()
        (one / name).write_bytes((other / name).read_bytes())
        with pytest.raises(InputError, match="damaged"):
            load(one, verify=False)
        (one / name).write_bytes(b"no table")
        with pytest.raises(InputError, match="damaged"):
            load(one, verify=False)
        (one / name).write_bytes(content)
    load(one, verify=False)


@pytest.mark.parametrize("verify", [True, False])
def test_a_manifest_that_names_no_feature_of_its_own_is_damage(tmp_path: Path, verify: bool) -> None:
    """Intervals of an unknown feature, or an estimate without `singleton`: the error has the name and the known ones."""
    place = release_of("constraint-based").save(tmp_path / "out").path
    original = json.loads((place / "manifest.json").read_text("utf-8"))
    names = [f["name"] for f in original["features"]]
    known = ", ".join(map(repr, names))

    def refused(changed: Mapping[str, Any], message: str) -> None:
        (place / "manifest.json").write_text(json.dumps(original | changed), "utf-8")
        with pytest.raises(InputError, match="damaged") as caught:
            load(place, verify=verify)
        assert message in str(caught.value)

    intervals = original["intervals"] | {"features": [*original["intervals"]["features"], "speed"]}
    refused({"intervals": intervals}, f"intervals of 'speed', which is not one of its features: {known}")
    others = [f for f in original["features"] if f["name"] != "singleton"]
    refused({"features": others}, "an estimate of 'singleton', which is not one of its features")
