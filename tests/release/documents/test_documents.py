"""README.md, datapackage.json and deployment.yaml: in every folder, true, guarded like all other files, and the same every time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from released import MECHANISMS, bytes_of, release_of, simulated_city
from spoken_about import FULL

import cbdp
from cbdp.errors import InputError
from cbdp.release.documents import DOCUMENT_NAMES
from cbdp.release.release import Release


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release with all words about it."""
    folder = tmp_path_factory.mktemp("spoken") / "out"
    release = replace(release_of("constraint-based"), about=FULL)
    release.save(folder, extra={"report.html": "<p>a report</p>"})
    return folder


def test_every_folder_has_them_and_the_manifest_knows(spoken: Path) -> None:
    """They are hashed as the data are, and a further file cannot take their place, in any case of letters."""
    stated = json.loads((spoken / "manifest.json").read_text("utf-8"))["files"]
    assert set(DOCUMENT_NAMES) <= set(stated)
    assert all((spoken / name).is_file() for name in DOCUMENT_NAMES)
    for name in (*DOCUMENT_NAMES, "readme.md"):
        with pytest.raises(InputError, match="further file"):
            release_of("laplace").save(spoken.parent / "other", extra={name: "x"})


@pytest.mark.parametrize("name", DOCUMENT_NAMES)
def test_a_changed_or_missing_document_is_found(name: str, tmp_path: Path) -> None:
    """An ε that somebody corrects in a README afterwards is not believed."""
    release_of("laplace").save(tmp_path / "out")
    path = tmp_path / "out" / name
    text = path.read_text("utf-8")
    path.write_text(text.replace("1", "2"), "utf-8")
    with pytest.raises(InputError, match=f"{name}.*does not match"):
        cbdp.load(tmp_path / "out")
    path.unlink()
    with pytest.raises(InputError, match=f"{name}.*missing"):
        cbdp.load(tmp_path / "out")


def test_a_folder_from_before_is_still_read(tmp_path: Path) -> None:
    """A release without these files, and without a word of them in its manifest."""
    release_of("person").save(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    for name in DOCUMENT_NAMES:
        (tmp_path / "out" / name).unlink()
        del manifest["files"][name]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert cbdp.load(tmp_path / "out").total == release_of("person").total


def test_the_same_release_gives_the_same_documents(spoken: Path, tmp_path: Path) -> None:
    """Saved again after loading, to the byte."""
    extra = {"report.html": (spoken / "report.html").read_text("utf-8")}
    cbdp.load(spoken).save(tmp_path / "again", extra=extra)
    before, after = bytes_of(spoken), bytes_of(tmp_path / "again")
    assert {name: before[name] for name in DOCUMENT_NAMES} == {name: after[name] for name in DOCUMENT_NAMES}


def test_a_simulation_is_marked_and_not_registered(tmp_path: Path) -> None:
    """Nothing that promises nothing has an entry for a registry, and its README begins with the warning."""
    simulated_city().save(tmp_path / "out", simulation=True)
    assert not (tmp_path / "out" / "deployment.yaml").exists()
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert text.startswith("**Simulation, not a release.**")
    assert "deployment.yaml" not in text
    assert "ε =" not in text
    package = json.loads((tmp_path / "out" / "datapackage.json").read_text("utf-8"))
    assert package["privacy"]["epsilon"] is None
    assert cbdp.load(tmp_path / "out").secure is False


def saved(release: Release, folder: Path) -> Path:
    release.save(folder, simulation=not release.secure)
    return folder


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_the_readme_names_every_file_and_every_column(name: str, tmp_path: Path) -> None:
    """Of every mechanism: nothing lies in the folder that the README does not tell about."""
    import pyarrow.parquet as pq

    folder = saved(release_of(name), tmp_path / "out")
    text = (folder / "README.md").read_text("utf-8")
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "README.md":
            assert f"| `{path.relative_to(folder).as_posix()}` |" in text
        if path.suffix == ".parquet":
            for column in pq.read_schema(path).names:
                (line,) = [at for at in text.splitlines() if at.startswith(f"| `{column}` |")]
                assert len(line.split(" | ")[2]) > len("The .")
