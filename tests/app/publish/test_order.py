"""A release is paid for before noise is drawn, published whole or not at all, and paid for once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from publishing import CONFIG, events, first, planned, trip_table

import cbdp
from cbdp.app import cli
from cbdp.app.publish import LostChargeError, publish
from cbdp.ledger import Ledger
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.release.files import load


def test_a_release_is_charged_once_and_found_again(folder: Path) -> None:
    """The second identical request costs nothing and changes nothing; the files agree with the ledger."""
    done = first(folder)
    before = {p: p.read_bytes() for p in sorted(done.path.rglob("*")) if p.is_file()}
    again = publish(planned(folder))
    assert done.fresh
    assert not again.fresh
    assert before == {p: p.read_bytes() for p in sorted(done.path.rglob("*")) if p.is_file()}
    assert events(folder) == ["opened", "reserved", "released"]
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        assert ledger.spent.epsilon == 1
        assert ledger.contains(load(done.path).manifest["ledger"]["head"])


def test_published_numbers_add_up(folder: Path) -> None:
    """Every table's counts sum to the trips, and lie inside their intervals."""
    first(folder)
    release = load(folder / "release")
    total = int(pq.read_table(folder / "release" / "trips.parquet")["count"].to_numpy().sum())
    for name in ("total", "time", "zone", "singleton"):
        table = pq.read_table(folder / "release" / "features" / f"{name}.parquet")
        assert table["count"].to_numpy().sum() == total
        assert (release.counts(name) >= 0).all()
        if name != "singleton":
            assert (table["low"].to_numpy() <= table["count"].to_numpy()).all()
            assert (table["count"].to_numpy() <= table["high"].to_numpy()).all()


def test_an_output_folder_of_others_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit 2, nothing spent, nothing written."""
    (folder / "release").mkdir()
    (folder / "release" / "mine").write_text("x")
    assert cli.main(["release", str(folder / "cbdp.toml"), "--create-ledger"]) == 2
    said = capsys.readouterr().err
    assert "exists already" in said
    assert said.count("\n") == 1
    assert not (folder / "ledger.sqlite").exists()


def test_a_changed_manifest_is_noticed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stored release that is not the one that was published is not handed out as it."""
    first(folder)
    manifest = folder / "release" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"cbdp"', '"cbdq"', 1))
    assert cli.main(["release", str(folder / "cbdp.toml"), "--create-ledger"]) == 2
    assert "not the one that was released" in capsys.readouterr().err
    assert events(folder) == ["opened", "reserved", "released"]


def test_what_is_over_the_cap_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The third charge of 400 against a cap of 1000 spends and writes nothing."""
    assert cli.main(["ledger", "create", str(folder / "cbdp.toml")]) == 0
    text = CONFIG.replace("epsilon = 1\n", "epsilon = 400\n")
    for run, ok in enumerate((True, True, False)):
        (folder / "cbdp.toml").write_text(
            text.replace('path = "release"', f'path = "release{run}"').replace("06:00", f"0{2 * run}:00")
        )
        assert cli.main(["release", str(folder / "cbdp.toml")]) == (0 if ok else 2)
    assert "does not fit" in capsys.readouterr().err
    assert not (folder / "release2").exists()
    assert events(folder).count("reserved") == 2


def test_what_can_fail_fails_before_anything_is_spent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that cannot be drawn, found out by the rehearsal, costs nothing."""

    def broken(*_: object, **__: object) -> str:
        raise cbdp.CbdpError("no report today")

    monkeypatch.setattr("cbdp.report.build", broken)
    with pytest.raises(cbdp.CbdpError, match="no report today"):
        first(folder)
    assert not (folder / "ledger.sqlite").exists()
    assert not list(folder.glob(".release*"))


def test_an_export_that_cannot_be_is_refused_before_anything_is_spent(folder: Path) -> None:
    """Flows on a map need coordinates: without them nothing is charged and nothing written."""
    (folder / "stops.csv").write_text("id,zone\n" + "".join(f"S{i},z\n" for i in range(6)))
    (folder / "cbdp.toml").write_text(CONFIG + 'export = ["geojson"]\n')
    with pytest.raises(cbdp.CbdpError, match="coordinates"):
        first(folder)
    assert not (folder / "ledger.sqlite").exists()
    assert not (folder / "release").exists()


def test_exports_lie_beside_the_release(folder: Path) -> None:
    """What the configuration asks for is written once, and again only if it is gone."""
    (folder / "cbdp.toml").write_text(CONFIG + 'export = ["csv"]\n')
    first(folder)
    assert (folder / "release-csv").exists()
    shutil.rmtree(folder / "release-csv")
    assert not first(folder).fresh
    assert (folder / "release-csv").exists()


def test_tables_that_disagree_are_released_without_intervals(folder: Path) -> None:
    """A histogram whose tables do not add up has no intervals to simulate; what was paid for is published."""
    text = CONFIG.replace("epsilon = 1\n", "epsilon = 1\ndelta = 1e-6\ncap_delta = 1e-3\n")
    (folder / "cbdp.toml").write_text(text.replace('"constraint-based"', '"stability-histogram"'))
    assert first(folder).fresh
    assert events(folder) == ["opened", "reserved", "released"]
    load(folder / "release")


@pytest.mark.slow
def test_two_requests_for_one_folder_pay_once(folder: Path) -> None:
    """Of two configurations that name the same folder the second to come is refused before it is charged."""
    cli.main(["ledger", "create", str(folder / "cbdp.toml")])
    other = folder / "other.toml"
    other.write_text(CONFIG.replace("epsilon = 1\n", "epsilon = 2\n"))
    commands = [[sys.executable, "-m", "cbdp", "release", str(f)] for f in (folder / "cbdp.toml", other)]
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for c in commands]
    told = [process.communicate()[1].decode() for process in running]
    assert sorted(process.returncode for process in running) == [0, 2], told
    assert events(folder).count("reserved") == 1


def test_what_fails_after_the_charge_says_what_it_cost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, for 2 means that nothing was spent; one line with the cause, the price and what to do."""
    real = cbdp.Release.save

    def full(self: cbdp.Release, *given: object, **options: object) -> object:
        if self.secure:
            raise OSError(28, "No space left on device")
        return real(self, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cbdp.Release, "save", full)
    with pytest.raises(LostChargeError):
        first(folder)
    assert cli.main(["release", str(folder / "cbdp.toml")]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    for words in (
        "after its charge",
        "No space left",
        "The charge of 1 stays spent",
        "run the command again",
    ):
        assert words in said
    assert events(folder) == ["opened", "reserved", "reserved"]


@pytest.mark.slow
def test_a_terminal_that_is_gone_does_not_end_a_release(folder: Path) -> None:
    """Nobody reads what is said: the release is made all the same."""
    command = [sys.executable, "-m", "cbdp", "release", str(folder / "cbdp.toml"), "--create-ledger"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        process.stderr.close()  # type: ignore[union-attr]
    assert process.returncode == 0
    assert events(folder) == ["opened", "reserved", "released"]


def test_a_manifest_that_contradicts_its_files_is_refused(folder: Path) -> None:
    """A smaller ε written into the manifest alone is found out when the release is read."""
    first(folder)
    manifest = folder / "release" / "manifest.json"
    said = json.loads(manifest.read_text())
    said["universe"]["dimensions"][0]["size"] += 1
    manifest.write_text(json.dumps(said))
    with pytest.raises(cbdp.CbdpError, match="universe"):
        load(folder / "release")


def test_a_mechanism_that_promises_nothing_does_not_release(folder: Path) -> None:
    """A release needs a claim that holds."""
    one = planned(folder)
    claim = replace(one.mechanism.claim(), holds=False, caveat="zeros are not perturbed")

    class Empty(type(one.mechanism)):  # type: ignore[misc]
        def claim(self):
            return claim

    with pytest.raises(cbdp.CbdpError, match="studied"):
        publish(replace(one, mechanism=Empty(one.features, 1)))
    assert not (folder / "ledger.sqlite").exists()


def test_rows_in_other_order_and_rows_outside_change_no_byte(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a fixed noise source the published files depend on nothing but the trips inside the universe."""
    table = trip_table()
    order = np.random.default_rng(1).permutation(table.num_rows)
    outside = pa.table(
        {"from": ["nowhere", "S1", None], "to": ["S1", "S1", "S2"], "at": table["at"].slice(0, 3)}
    )
    seeded = InsecureSeededEntropy
    monkeypatch.setattr(seeded, "secure", True)  # a test's pretence: nothing else is published from a seed
    monkeypatch.setattr("cbdp.mechanisms.base.SystemEntropy", lambda: seeded(3))
    found = []
    for rows in (table, pa.concat_tables([table.take(order), outside])):
        pq.write_table(rows, folder / "trips.parquet")
        first(folder)
        (folder / "ledger.sqlite").unlink()
        manifest = load(folder / "release").manifest
        files = {
            str(p.relative_to(folder)): p.read_bytes()
            for p in sorted((folder / "release").rglob("*.parquet"))
        }
        found.append((files, {k: v for k, v in manifest.items() if k not in ("ledger", "files")}))
        shutil.rmtree(folder / "release")
    assert found[0] == found[1]
