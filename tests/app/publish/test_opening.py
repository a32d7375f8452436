"""The ledger is created when somebody asks for it. A lost, empty, old or other one never gives a full cap by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from publishing import change, entries, events, first, planned
from small_city import state_of

from cbdp.app import cli
from cbdp.app.publish import publish
from cbdp.errors import InputError
from cbdp.ledger import Ledger

Captured = pytest.CaptureFixture[str]
NEXT = ('path = "release"', 'path = "release-2"')
OTHER = ("epsilon = 1\n", "epsilon = 2\n")


def refused(folder: Path, capsys: Captured, *options: str) -> str:
    """What is said in one line where nothing is spent and nothing is written."""
    before = state_of(folder)
    assert cli.main(["release", str(folder / "cbdp.toml"), *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert {k: v[0] for k, v in state_of(folder).items()} == {k: v[0] for k, v in before.items()}
    return said


def lost(folder: Path) -> Path:
    """Move the ledger away."""
    return (folder / "ledger.sqlite").rename(folder.parent / f"{folder.name}.sqlite")


def test_without_a_ledger_nothing_is_released(folder: Path, capsys: Captured) -> None:
    """The line says which file is missing, and what to do if the trips are new and if they are not."""
    said = refused(folder, capsys)
    assert f"the ledger '{folder / 'ledger.sqlite'}' does not exist" in said
    assert "If data set 'a small city' was never released, create it: cbdp ledger create" in said
    assert "Otherwise restore it" in said
    with pytest.raises(InputError, match="does not exist"):
        publish(planned(folder))


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"\0" * 8192, b"SQLite format 3\0 and no more"])
def test_an_emptied_or_cut_file_is_no_new_ledger(folder: Path, capsys: Captured, content: bytes) -> None:
    """After a release, its ledger's content is gone: refused, with the release beside it and without."""
    first(folder)
    change(folder, NEXT, OTHER)
    for log in ("-wal", "-shm"):
        (folder / f"ledger.sqlite{log}").unlink(missing_ok=True)
    (folder / "ledger.sqlite").write_bytes(content)
    refused(folder, capsys)
    shutil.rmtree(folder / "release")
    said = refused(folder, capsys)
    assert "is an empty file" in said or "is not a ledger" in said


def test_a_ledger_that_was_moved_away_is_not_made_anew(folder: Path, capsys: Captured) -> None:
    """Neither by a release nor by asking for a new one: the release beside it names the ledger that it was charged to."""
    first(folder)
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        name = ledger.id
    home = lost(folder)
    assert "was charged to a ledger" in refused(
        folder, capsys
    )  # into the same place, by the configuration's line
    change(folder, NEXT, OTHER)
    assert "does not exist" in refused(folder, capsys)
    said = refused(folder, capsys, "--create-ledger")
    assert f"'{folder / 'release'}' was charged to a ledger of data set 'a small city' (id {name})" in said
    assert "restore that ledger" in said
    assert cli.main(["ledger", "create", str(folder / "cbdp.toml")]) == 2
    assert "restore that ledger" in capsys.readouterr().err
    assert not (folder / "ledger.sqlite").exists()
    home.rename(folder / "ledger.sqlite")
    assert cli.main(["release", str(folder / "cbdp.toml"), "--accept-unusual"]) == 0
    assert events(folder) == ["opened", "reserved", "released", "reserved", "released"]


def test_a_new_promise_is_possible_and_deliberate(folder: Path) -> None:
    """Whoever moves the earlier releases away may begin a new ledger."""
    first(folder)
    lost(folder)
    (folder / "published").mkdir()
    (folder / "release").rename(folder / "published" / "release")
    assert first(folder).fresh


def test_an_old_copy_of_the_ledger_is_refused(folder: Path, capsys: Captured) -> None:
    """Two releases were charged; a copy from between them knows the first alone."""
    first(folder)
    copy = shutil.copy(folder / "ledger.sqlite", folder / "copy.sqlite")
    publish(planned(folder, NEXT, OTHER))
    shutil.move(copy, folder / "ledger.sqlite")
    change(folder, ('"release-2"', '"release-3"'), ("epsilon = 2\n", "epsilon = 3\n"))
    said = refused(folder, capsys)
    assert f"'{folder / 'release-2'}' was charged to the ledger" in said
    assert "an old copy, or its end was cut off" in said
    assert cli.main(["check", str(folder / "cbdp.toml")]) == 0
    assert "`cbdp release` will refuse: the release" in " ".join(capsys.readouterr().out.split())


def test_another_ledger_of_the_same_data_set_is_refused(folder: Path, capsys: Captured) -> None:
    """A fresh one with a full cap, put in the place of the first."""
    first(folder)
    lost(folder)
    with Ledger.open(folder / "ledger.sqlite", dataset="a small city", cap=1000, create=True) as ledger:
        name = ledger.id
    change(folder, NEXT, OTHER)
    said = refused(folder, capsys)
    assert "was charged to another ledger of data set 'a small city'" in said
    assert f"not {name}" in said


def test_a_ledger_that_is_swapped_during_the_count_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look before the charge is the one that counts; nothing is charged to the new ledger."""
    first(folder)
    one = planned(folder, NEXT, OTHER)
    real = one.mechanism.__class__.simulate

    def swapped(self: object, *given: object, **options: object) -> object:
        lost(folder)
        Ledger.open(folder / "ledger.sqlite", dataset="a small city", cap=1000, create=True).close()
        return real(self, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(one.mechanism.__class__, "simulate", swapped)
    with pytest.raises(InputError, match="another ledger"):
        publish(one)
    assert events(folder) == ["opened"]
    assert not (folder / "release-2").exists()


def test_releases_of_others_and_of_older_versions_raise_no_alarm(folder: Path) -> None:
    """Another data set's release, one whose manifest does not say whose it is, and folders that are no releases."""
    first(folder)
    manifest = folder / "release" / "manifest.json"
    stated = json.loads(manifest.read_text())
    head = stated["ledger"]["head"]
    for n, ledger in enumerate(
        (
            {"head": head},
            {"head": None},
            {"head": head, "id": "0" * 32, "owner": {"dataset": "another city"}},
            {"head": head, "id": "0" * 32, "owner": {"riders": "a small city"}},
            [],
        )
    ):
        (folder / f"other-{n}").mkdir()
        (folder / f"other-{n}" / "manifest.json").write_text(json.dumps({**stated, "ledger": ledger}))
    for n, text in enumerate(("", "{", "[]", '{"format": "another"}')):
        (folder / f"foreign-{n}").mkdir()
        (folder / f"foreign-{n}" / "manifest.json").write_text(text)
    shutil.rmtree(folder / "release")
    lost(folder)
    assert first(folder, NEXT, OTHER).fresh


def test_asking_for_a_new_ledger_is_no_habit(folder: Path, capsys: Captured) -> None:
    """It may be repeated for the same request, finished or not; for the next release it is refused."""
    first(folder)
    assert not first(folder).fresh
    change(folder, NEXT, OTHER)
    assert "leave --create-ledger out" in refused(folder, capsys, "--create-ledger")
    assert publish(planned(folder)).fresh


def test_creating_is_done_once_and_may_be_repeated(folder: Path, capsys: Captured) -> None:
    """An empty file that a killed run has left is finished; a ledger that is there is not changed."""
    (folder / "ledger.sqlite").touch()
    for state in ("created: ", "exists already, nothing was changed: "):
        assert cli.main(["ledger", "create", str(folder / "cbdp.toml")]) == 0
        said = capsys.readouterr().out
        assert said.startswith(
            f"{state}{folder / 'ledger.sqlite'} of data set 'a small city', cap 1000, spent 0"
        )
    assert events(folder) == ["opened"]
    change(folder, ("cap = 1000", "cap = 5"))
    assert cli.main(["ledger", "create", str(folder / "cbdp.toml")]) == 2
    assert "the ledger's cap is 1000, not 5" in capsys.readouterr().err


def test_months_of_the_same_riders_share_a_ledger(folder: Path, capsys: Captured) -> None:
    """Two data sets, one ledger: both are charged, both are witnesses, and `ledger show` tells them apart."""
    january = ('id = "a small city"', 'id = "january"\nriders = "cards"')
    first(folder, january, ("cap = 1000", "cap = 3"))
    publish(planned(folder, ('"january"', '"february"'), NEXT))
    assert [f["dataset"] for e, f in entries(folder) if e == "reserved"] == ["january", "february"]
    stated = [
        json.loads((folder / name / "manifest.json").read_text())["ledger"]
        for name in ("release", "release-2")
    ]
    assert [s["owner"] for s in stated] == [{"riders": "cards"}] * 2
    assert stated[0]["id"] == stated[1]["id"]
    assert cli.main(["ledger", "show", str(folder / "ledger.sqlite")]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["january", "1", "1", "0"] in shown
    assert ["february", "1", "1", "0"] in shown
    assert ["in", "all", "2", "2", "0"] in shown
    change(folder, ('"february"', '"march"'), ('"release-2"', '"release-3"'), OTHER)
    said = refused(folder, capsys)
    assert "a charge of 2 does not fit: 1 of the cap 3 is left for the riders 'cards'" in said
