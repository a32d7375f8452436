"""Files of commands: nothing is overwritten, and nothing internal lands in a release or under an innocent name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cbdp
from cbdp.commands.program import check_new, release_around, write_new
from cbdp.errors import InputError


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The folder of a release."""
    dag = cbdp.FeatureDag(cbdp.Universe(origin=["A", "B"]), [])
    made = cbdp.ConstraintBased(dag, 1).simulate(np.array([3, 4]), 1)
    return made.save(tmp_path / "release", simulation=True).path


def test_a_file_is_written_once(tmp_path: Path) -> None:
    """A second time, and without a folder, it is refused, before the work and when writing; the first text stays."""
    path = tmp_path / "internal.html"
    check_new(path, internal=True)
    write_new(path, "ε", internal=True)
    for again in (lambda: check_new(path, internal=False), lambda: write_new(path, "x")):
        with pytest.raises(InputError, match=r"internal\.html' exists already and is not overwritten"):
            again()
    assert path.read_text(encoding="utf-8") == "ε"
    nowhere = tmp_path / "none" / "page.html"
    with pytest.raises(InputError, match=r"there is no folder .*none': create it first"):
        check_new(nowhere, internal=False)
    with pytest.raises(InputError, match="cannot be written"):
        write_new(nowhere, "x")


def test_a_link_that_leads_nowhere_is_taken(tmp_path: Path) -> None:
    """What it points to is not created."""
    (tmp_path / "link.html").symlink_to(tmp_path / "target.html")
    for refuse in (check_new, lambda path, internal: write_new(path, "x", internal=internal)):
        with pytest.raises(InputError, match="exists already"):
            refuse(tmp_path / "link.html", internal=False)
    assert not (tmp_path / "target.html").exists()


def test_nothing_internal_goes_into_a_release(release: Path) -> None:
    """Neither beside the manifest nor in a folder at any depth below it; what is public may."""
    deep = release / "features" / "more" / "still"
    deep.mkdir(parents=True)
    for folder in (release, release / "features", deep):
        path = folder / "internal.html"
        check_new(path, internal=False)
        with pytest.raises(InputError, match=rf"lies in the release '{release}'.*choose a place outside"):
            check_new(path, internal=True)
        with pytest.raises(InputError, match="lies in the release"):
            write_new(path, "x", internal=True)
        assert not path.exists()


def test_links_into_and_out_of_a_release_are_seen(release: Path, tmp_path: Path) -> None:
    """A folder that leads into a release, one in a release that leads out, and a way around by dots."""
    (tmp_path / "innocent").symlink_to(release / "features")
    (tmp_path / "mine").mkdir()
    (release / "out").symlink_to(tmp_path / "mine")
    for folder in (tmp_path / "innocent", release / "out", tmp_path / "mine" / ".." / "release"):
        with pytest.raises(InputError, match="lies in the release"):
            check_new(folder / "internal.html", internal=True)
    check_new(release / ".." / "mine" / "internal.html", internal=True)


def test_a_release_that_came_during_the_work_is_seen(release: Path, tmp_path: Path) -> None:
    """The place was free when the work began, and is inside a release when the page is written."""
    path = tmp_path / "later" / "internal.html"
    path.parent.mkdir()
    check_new(path, internal=True)
    (path.parent / "manifest.json").write_bytes((release / "manifest.json").read_bytes())
    with pytest.raises(InputError, match="lies in the release"):
        write_new(path, "x", internal=True)


@pytest.mark.parametrize(
    ("manifest", "ours"),
    [
        ('{"format": "cbdp-release"}', True),
        ("{", True),  # a damaged one may be ours
        ('{"name": "a web page", "icons": []}', False),
        ("[]", False),
    ],
)
def test_only_manifests_of_ours_make_a_release(manifest: str, ours: bool, tmp_path: Path) -> None:
    """Web pages have files of this name too."""
    (tmp_path / "manifest.json").write_text(manifest)
    assert release_around(tmp_path / "internal.html") == (tmp_path if ours else None)


@pytest.mark.parametrize(
    ("name", "proposed"),
    [("page.html", "page-internal.html"), ("audit", "audit-internal"), (".x", ".x-internal")],
)
def test_what_is_internal_says_so_in_its_name(name: str, proposed: str, tmp_path: Path) -> None:
    """Another name is refused, with one that would do."""
    check_new(tmp_path / name, internal=False)
    with pytest.raises(InputError) as refused:
        check_new(tmp_path / name, internal=True)
    assert str(refused.value).endswith(f"use {str(tmp_path / proposed)!r}")
    for marked in (proposed, f"INTERNAL {name}"):
        check_new(tmp_path / marked, internal=True)


def test_every_release_folder_is_known_as_one(release: Path) -> None:
    """Also one of the first version."""
    manifest = release / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text("utf-8")) | {"version": 1}))
    assert release_around(release / "internal.html") == release
