"""The audit of our own releases: an honest one passes, and what was tampered with is found and named."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ledgers import append
from scipy.stats import binom

import cbdp
from cbdp.app import cli
from cbdp.app.audit import audit_release as audit
from cbdp.app.audit import membership, records
from cbdp.app.config import read
from cbdp.app.plan import plan
from cbdp.app.publish import publish
from cbdp.audit import Audit, Finding, book, promises
from cbdp.audit.ours import opened
from cbdp.errors import InputError
from cbdp.measuring.samplers.geometric import GeometricSampler
from cbdp.measuring.samplers.rounded import RoundedSampler
from cbdp.privacy.ledger import Ledger
from cbdp.privacy.ledger.store import SCHEMA
from cbdp.privacy.measurement import Measurement
from cbdp.release.release import Release
from cbdp.rounding.whole import round_trips

CONFIG = """
[data]
trips = "trips.parquet"
stops = "stops.csv"
id = "a small city"
columns = { origin = "from", destination = "to", time = "at" }

[universe]
time = { start = "06:00", end = "14:00", every = "2h" }
zones = { column = "zone" }
origin_is_destination = false

[[feature]]
name = "zone"
by = ["origin.zone", "destination.zone", "time"]

[privacy]
epsilon = 3
unit = "trip"
ledger = "ledger.sqlite"
cap = 10

[output]
path = "release"
"""
ZONES = {f"S{i}": ("north" if i < 4 else "south") for i in range(8)}


def write_inputs(folder: Path, n: int = 4000) -> None:
    rng = np.random.default_rng(5)
    seconds = rng.integers(5 * 3600, 15 * 3600, n)
    start = np.datetime64("2026-03-02T00:00:00")
    table = pa.table(
        {
            "from": [f"S{i}" for i in rng.integers(0, 9, n)],  # S8 is no stop
            "to": [f"S{i}" for i in rng.integers(0, 8, n)],
            "at": pa.array(start + seconds.astype("timedelta64[s]")),
        }
    )
    pq.write_table(table, folder / "trips.parquet")
    rows = [f"{s},stop {s},{42.2 + i / 100},{-83.7 + i / 80},{z}" for i, (s, z) in enumerate(ZONES.items())]
    (folder / "stops.csv").write_text("\n".join(["id,name,lat,lon,zone", *rows]) + "\n")
    (folder / "cbdp.toml").write_text(CONFIG)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_inputs(folder)
    publish(plan(read(folder / "cbdp.toml")))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of an honest release, with its configuration, ledger and trips, to be tampered with."""
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def made_by_projection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("projected")
    write_inputs(folder)
    (folder / "cbdp.toml").write_text(CONFIG + '\n[mechanism]\npreset = "paper"\n')
    publish(plan(read(folder / "cbdp.toml")))
    return folder


@pytest.fixture
def projected(made_by_projection: Path, tmp_path: Path) -> Path:
    """A copy of an honest release in the paper's configuration."""
    shutil.copytree(made_by_projection, tmp_path / "projected")
    return tmp_path / "projected"


def run(folder: Path, *options: str) -> int:
    return cli.main(["audit", str(folder / "release"), *options])


def contradictions(folder: Path, **given: object) -> list[Finding]:
    return audit(folder / "release", **given).of("contradicts")


# Honest releases


def test_a_clean_release_has_no_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0; every check is clear, with the ledger, the configuration and the trips as well."""
    everything = ["--ledger", str(folder / "ledger.sqlite"), "--trips", str(folder / "cbdp.toml")]
    for options in ([], ["--ledger", str(folder / "ledger.sqlite")], everything):
        assert run(folder, *options) == 0
        said = capsys.readouterr()
        assert "CONTRADICTS" not in said.out
        assert "weakness " not in said.out
        assert said.err == ""
        assert ("INTERNAL" in said.out) == ("--trips" in options)


def test_the_audit_leaves_everything_as_it_was(folder: Path) -> None:
    """No file of the release, the ledger or the inputs changes, and none is added."""
    before = {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    audit(folder / "release", config=folder / "cbdp.toml", trips=True)
    assert before == {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_what_was_not_looked_at_is_said(folder: Path) -> None:
    """Without a ledger and without trips the audit says what it cannot know."""
    done = audit(folder / "release")
    assert done.verdict == "clear"
    assert not done.sensitive
    assert len(done.left_out) == 2
    assert "ledger" in done.left_out[0]
    assert {f.check for f in done.findings} >= {
        "files",
        "manifest",
        "tables",
        "intervals",
        "noise scales",
        "composition",
        "estimate",
    }
    full = audit(folder / "release", config=folder / "cbdp.toml", trips=True)
    assert {f.check for f in full.findings} >= {"ledger", "residuals"}
    assert full.sensitive


# Tampering


def row_of(table: pa.Table, row: int) -> str:
    keys = [n for n in table.column_names if n not in ("noisy", "scale", "estimate", "count", "low", "high")]
    return " · ".join(str(table[n][row].as_py()) for n in keys)


def change(folder: Path, file: str, column: str, row: int, by: float) -> str:
    """Add to one number of a table; the row's name."""
    path = folder / "release" / file
    table = pq.read_table(path)
    values = table[column].to_numpy().copy()
    values[row] += by
    place = table.column_names.index(column)
    changed = table.set_column(place, column, pa.array(values, table[column].type))
    pq.write_table(changed, path, compression="zstd", store_schema=False)
    return row_of(table, row)


def manifest_of(folder: Path) -> dict:
    return json.loads((folder / "release" / "manifest.json").read_text())


def write_manifest(folder: Path, manifest: dict) -> None:
    text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    (folder / "release" / "manifest.json").write_text(text)


def correct_hashes(folder: Path) -> None:
    """What a careful tamperer does: hashes, sizes and totals in the manifest are those of the files."""
    manifest = manifest_of(folder)
    for name, stated in manifest["files"].items():
        content = (folder / "release" / name).read_bytes()
        stated |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    trips = pq.read_table(folder / "release" / "trips.parquet")
    manifest["trips"] |= {"types": trips.num_rows, "total": int(trips["count"].to_numpy().sum())}
    write_manifest(folder, manifest)


def busiest(folder: Path, file: str, column: str = "count") -> int:
    return int(np.argmax(pq.read_table(folder / "release" / file)[column].to_numpy()))


@pytest.mark.parametrize("careful", [False, True])
def test_a_count_among_the_trips(folder: Path, capsys: pytest.CaptureFixture[str], careful: bool) -> None:
    """The file and the trip type are named, whether or not the hashes were corrected."""
    words = change(folder, "trips.parquet", "count", busiest(folder, "trips.parquet"), 1)
    if careful:
        correct_hashes(folder)
    assert run(folder) == 1
    assert f"trips.parquet: the count of {words} is not what all other tables say" in capsys.readouterr().out


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("name", ["total", "zone", "singleton"])
def test_a_count_of_a_table(
    folder: Path, capsys: pytest.CaptureFixture[str], careful: bool, name: str
) -> None:
    """The table's file, the row and the column are named."""
    file = f"features/{name}.parquet"
    words = change(folder, file, "count", busiest(folder, file), -1) or "the whole"
    if careful:
        correct_hashes(folder)
    assert run(folder) == 1
    assert f"{file}: count of {words} is not what follows from the rest" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["total", "zone"])
@pytest.mark.parametrize("by", [-7, 40])
def test_a_noisy_answer(projected: Path, name: str, by: int) -> None:
    """Though hashes fit, the estimates do not follow from it: the answer is named, and what it must have been."""
    file = f"features/{name}.parquet"
    row = busiest(projected, file)
    was = pq.read_table(projected / "release" / file)["noisy"][row].as_py()
    words = change(projected, file, "noisy", row, by) or "the whole"
    correct_hashes(projected)
    found = [f for f in contradictions(projected) if f.check == "estimate"]
    assert [f.title for f in found] == [f"{name}: the noisy count of {words} was changed"]
    assert f"is {was + by}; the estimates follow from {was}." in found[0].evidence


@pytest.mark.parametrize("name", ["total", "zone"])
def test_a_noisy_answer_under_expected_counts(folder: Path, name: str) -> None:
    """Of expected counts all depend on every answer: that they do not follow is noticed, not from which."""
    file = f"features/{name}.parquet"
    change(folder, file, "noisy", busiest(folder, file), 40)
    correct_hashes(folder)
    found = [f for f in contradictions(folder) if f.check == "estimate"]
    assert len(found) == 1
    assert found[0].title.endswith("does not follow from the noisy answers")


@pytest.mark.parametrize("column", ["noisy", "estimate"])
def test_a_noisy_answer_or_an_estimate_of_a_trip_type(folder: Path, column: str) -> None:
    """A trip type whose answer and estimate do not belong together is named, among all that moved with it."""
    words = change(folder, "features/singleton.parquet", column, busiest(folder, "trips.parquet"), 3)
    file = pq.read_table(folder / "release" / "features" / "singleton.parquet")
    row = busiest(folder, "trips.parquet")
    assert file["estimate"][row].as_py() > 0
    correct_hashes(folder)
    found = [f for f in contradictions(folder) if f.check == "estimate"]
    assert len(found) == 1
    assert words in found[0].title


def test_an_estimate_of_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Estimates add up to the last digits."""
    words = change(folder, "features/zone.parquet", "estimate", 3, 0.01)
    correct_hashes(folder)
    assert run(folder) == 1
    assert f"features/zone.parquet: estimate of {words}" in capsys.readouterr().out


def test_an_interval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An interval that does not hold its own count is impossible."""
    words = change(folder, "features/zone.parquet", "low", busiest(folder, "features/zone.parquet"), 5000)
    correct_hashes(folder)
    assert run(folder) == 1
    assert f"zone: the interval of {words} is impossible" in capsys.readouterr().out


def test_the_scale_in_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The scale that a table shows is the one that the manifest prices."""
    words = change(folder, "features/zone.parquet", "scale", 1, 1.0)
    correct_hashes(folder)
    assert run(folder) == 1
    assert f"features/zone.parquet: scale of {words}" in capsys.readouterr().out


def reordered(folder: Path, file: str, order: Callable[[int], list[int]]) -> None:
    path = folder / "release" / file
    table = pq.read_table(path)
    pq.write_table(table.take(order(table.num_rows)), path, compression="zstd", store_schema=False)
    correct_hashes(folder)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (lambda n: [1, 0, *range(2, n)], "is out of the canonical order"),
        (lambda n: [0, 0, *range(1, n)], "is listed twice"),
    ],
)
def test_rows_of_the_trips_out_of_place(folder: Path, order: Callable[[int], list[int]], words: str) -> None:
    """An order that is not the universe's could tell who came first; the first such row is named."""
    first = row_of(pq.read_table(folder / "release" / "trips.parquet"), 0)
    reordered(folder, "trips.parquet", order)
    assert f"trips.parquet: {first} {words}" in [f.title for f in contradictions(folder)]


def test_labels_of_two_rows_exchanged(folder: Path) -> None:
    """Tables are in the features' own order: a row under another's name is found."""
    path = folder / "release" / "features" / "zone.parquet"
    table = pq.read_table(path)
    swapped = [1, 0, *range(2, table.num_rows)]
    for place, name in enumerate(table.column_names[:3]):
        table = table.set_column(place, name, table[name].take(swapped))
    pq.write_table(table, path, compression="zstd", store_schema=False)
    correct_hashes(folder)
    assert any("features/zone.parquet: time of" in f.title for f in contradictions(folder))


def test_a_stop_that_the_universe_does_not_know(folder: Path) -> None:
    """A row outside the public universe is named."""
    path = folder / "release" / "trips.parquet"
    table = pq.read_table(path)
    names = ["S9", *table["origin"].to_pylist()[1:]]
    pq.write_table(table.set_column(0, "origin", pa.array(names)), path, store_schema=False)
    correct_hashes(folder)
    assert any(re.search(r"trips\.parquet: S9 · .* is outside", f.title) for f in contradictions(folder))


@pytest.mark.parametrize("what", ["missing", "further", "unreadable"])
def test_files(folder: Path, what: str) -> None:
    """A file that is gone, one too many, or one that is no table is named."""
    release = folder / "release"
    if what == "missing":
        (release / "features" / "zone.parquet").unlink()
        expected = "features/zone.parquet is missing"
    elif what == "further":
        (release / "notes.txt").write_text("private")
        expected = "notes.txt does not belong to the release"
    else:
        (release / "features" / "zone.parquet").write_bytes(b"nonsense")
        expected = "features/zone.parquet was changed after it was released"
    assert expected in [f.title for f in contradictions(folder)]


def edited(folder: Path, edit: Callable[[dict], None]) -> None:
    manifest = manifest_of(folder)
    edit(manifest)
    write_manifest(folder, manifest)


def lower_epsilon(m: dict) -> None:
    m["privacy"]["epsilon"] = {"exact": "2", "decimal": 2.0}


def lower_every_epsilon(m: dict) -> None:
    """All that a manifest says of ε, halved; the scales stay."""
    for entry in [m["privacy"], m["privacy"]["spent"], *m["privacy"]["spent"]["parts"], *m["features"]]:
        entry["epsilon"] = {
            "exact": str(Fraction(entry["epsilon"]["exact"]) / 2),
            "decimal": entry["epsilon"]["decimal"] / 2,
        }
    for entry in m["measurements"]:
        entry["epsilon"] = {"exact": "2/3", "decimal": 2 / 3}


def raise_scale(m: dict) -> None:
    m["measurements"][1]["scale"] = {"exact": "2", "decimal": 2.0}


def drop_spend(m: dict) -> None:
    m["privacy"]["spent"]["parts"].pop()


def raise_sensitivity(m: dict) -> None:
    m["privacy"]["unit"]["sensitivity"] = 2


def another_statement(m: dict) -> None:
    m["privacy"]["statement"] = m["privacy"]["statement"].replace("3 features", "2 features")


def another_solver(m: dict) -> None:
    m["rounding"] = {"exact": False, "violations": {"zone": 3}}


def another_universe(m: dict) -> None:
    m["universe"]["sha256"] = "0" * 64


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lower_epsilon, "manifest.json: privacy/epsilon is not what the noise costs"),
        (lower_every_epsilon, "manifest.json: privacy/spent is not what the noise costs"),
        (raise_scale, "manifest.json: the scale of measurements/zone does not fit its ε"),
        (drop_spend, "manifest.json: singleton was answered and is in no sum of ε"),
        (raise_sensitivity, "manifest.json: privacy/unit/sensitivity is not what follows"),
        (another_statement, "manifest.json: privacy/statement is not what follows"),
        (another_solver, "manifest.json: rounding/exact is not what follows"),
        (another_universe, "manifest.json: universe/sha256 is not what follows"),
        (lambda m: m.pop("privacy"), "manifest.json is not a manifest that was written"),
        (lambda m: m["trips"].update(total=1), "trips.parquet is not what the manifest says of trips/total"),
    ],
)
def test_the_manifest(
    folder: Path, capsys: pytest.CaptureFixture[str], edit: Callable[[dict], None], words: str
) -> None:
    """The field that was changed is named; the manifest's own hash is in the ledger, which tells too if it can be read."""
    edited(folder, edit)
    assert run(folder, "--ledger", str(folder / "ledger.sqlite")) == 1
    said = capsys.readouterr().out
    assert words in said
    assert ("manifest.json is not the one that was released" in said) == ("privacy" in manifest_of(folder))


def fields_of(stated: object, path: tuple = ()) -> list[tuple]:
    inner = (
        stated.items() if isinstance(stated, dict) else enumerate(stated) if isinstance(stated, list) else ()
    )
    return [path, *(p for key, part in inner for p in fields_of(part, (*path, key)))]


def test_any_edit_of_the_manifest_is_answered(folder: Path) -> None:
    """Whatever one field is changed to, the audit ends, and says that something is wrong: at least the ledger does."""
    rng = random.Random(7)
    honest = manifest_of(folder)
    paths = [p for p in fields_of(honest) if p and p[0] not in ("files", "format", "version")]
    values = [None, "x", 0, -1, 1.5, "1/0", "0", "-3", [], {}, True, 10**30, 1e300, "inf"]
    for path in rng.sample(paths, 60):
        manifest, value = copy.deepcopy(honest), rng.choice(values)
        at = manifest
        for key in path[:-1]:
            at = at[key]
        if at[path[-1]] == value:
            continue
        at[path[-1]] = value
        write_manifest(folder, manifest)
        ours = opened(folder / "release")
        found = list(ours.findings)
        if not any(f.check == "manifest" and ours.release is None for f in found):
            found += [*promises.attack(ours.manifest), *book.attack(folder / "ledger.sqlite", ours)]
        assert any(f.verdict == "contradicts" for f in found), (path, value)


def test_only_the_ledger_notices_a_careful_change_of_the_report(folder: Path) -> None:
    """What follows from nothing else can be changed with its hash; the ledger's hash of the manifest remains."""
    (folder / "release" / "report.html").write_text("<p>all is well</p>")
    correct_hashes(folder)
    assert contradictions(folder) == []
    titles = [f.title for f in contradictions(folder, ledger=folder / "ledger.sqlite")]
    assert titles == ["manifest.json is not the one that was released"]


# The ledger


def rewrite(folder: Path, *statements: str, restore: bool = True) -> None:
    """Change a ledger behind its triggers' back."""
    with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as book:
        for name in ("no_update", "no_delete", "append"):
            book.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            book.execute(statement)
        if restore:
            for name in ("append", "no_update", "no_delete"):
                book.execute(SCHEMA[name])


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE entry SET entry = replace(entry, '\"nano\":3000000000', '\"nano\":1000000000') WHERE sequence = 2",
            "entry 2 of the ledger",
        ),
        ("UPDATE entry SET hash = previous WHERE sequence = 3", "entry 3 of the ledger"),
        ("DELETE FROM entry WHERE sequence = 2", "entry 2 of the ledger"),
        ("DELETE FROM entry WHERE sequence = 3", "does not note that the charge of entry 2 was released"),
        ("DELETE FROM entry WHERE sequence > 1", "The ledger does not hold the charge"),
        ("DELETE FROM entry", "entry 1 is missing"),
    ],
)
def test_an_edited_or_cut_ledger(
    folder: Path, capsys: pytest.CaptureFixture[str], statement: str, words: str
) -> None:
    """The broken entry, or what the ledger ought to hold, is named; also when it is found by the configuration."""
    rewrite(folder, statement)
    by_file = ["--ledger", str(folder / "ledger.sqlite")]
    assert run(folder, *(["--config", str(folder / "cbdp.toml")] if "nano" in statement else by_file)) == 1
    assert words in capsys.readouterr().out


def test_a_ledger_whose_triggers_are_gone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both the missing trigger and the edited entry are named."""
    rewrite(folder, "UPDATE entry SET hash = previous WHERE sequence = 3", restore=False)
    assert run(folder, "--ledger", str(folder / "ledger.sqlite")) == 1
    said = capsys.readouterr().out
    assert "'append' of its schema is missing" in said
    assert "entry 3 of the ledger" in said


def test_a_ledger_that_charged_less(folder: Path) -> None:
    """A sound ledger made for the purpose holds another charge than the release's."""
    other = folder / "other.sqlite"
    with Ledger.open(other, dataset="a small city", cap=10, create=True) as ledger:
        charge = ledger.reserve("request", 1)
    edited(folder, lambda m: m["ledger"].update(head=charge.head))
    digest = hashlib.sha256((folder / "release" / "manifest.json").read_bytes()).hexdigest()
    with Ledger.open(other, dataset="a small city") as ledger:
        ledger.released(charge, digest, folder / "release")
    found = contradictions(folder, ledger=other)
    assert [f.title for f in found] == ["Entry 2 of the ledger charges 1, the release claims 3"]


def test_an_abandoned_charge(folder: Path) -> None:
    """Older ledgers may say that a charge was given up: a release on it was never noted."""
    other = folder / "other.sqlite"
    with Ledger.open(other, dataset="a small city", cap=10, create=True) as ledger:
        charge = ledger.reserve("request", 3)
    append(other, {"event": "abandoned", "charge": charge.id, "note": "lost"})
    edited(folder, lambda m: m["ledger"].update(head=charge.head))
    titles = [f.title for f in contradictions(folder, ledger=other)]
    assert titles == ["The ledger does not note that the charge of entry 2 was released"]


def test_a_release_outside_any_ledger(folder: Path) -> None:
    """A manifest that names no charge contradicts whoever shows a ledger for it."""
    edited(folder, lambda m: m["ledger"].update(head=None))
    titles = [f.title for f in contradictions(folder, ledger=folder / "ledger.sqlite")]
    assert titles == ["manifest.json: ledger/head names no charge"]


def test_another_configuration(folder: Path) -> None:
    """Another ε is another request than the one that was charged, another cap another ledger; another universe is bad input."""
    config = folder / "cbdp.toml"
    config.write_text(CONFIG.replace("epsilon = 3", "epsilon = 2"))
    assert any("another request" in f.title for f in contradictions(folder, config=config))
    config.write_text(CONFIG.replace("cap = 10", "cap = 9"))
    assert [f.title for f in contradictions(folder, config=config)] == [
        "The ledger's cap is 10, the configuration's 9"
    ]
    config.write_text(CONFIG.replace("a small city", "a large city"))
    assert any("of data set 'a small city'" in f.title for f in contradictions(folder, config=config))
    config.write_text(CONFIG.replace('every = "2h"', 'every = "1h"'))
    with pytest.raises(InputError, match="another universe"):
        audit(folder / "release", config=config)


# Bad input


def test_bad_input_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line for what is no release, no ledger, no trips, or no place for a page."""
    nothing = folder / "nothing"
    nothing.mkdir()
    (folder / "text.sqlite").write_text("this is no ledger, and long enough to be taken for something" * 20)
    (folder / "exists.html").write_text("x")
    (folder / "other.parquet").write_bytes((folder / "release" / "features" / "zone.parquet").read_bytes())
    release = str(folder / "release")
    bad = [
        [str(folder / "gone")],
        [str(nothing)],
        [release, "--ledger", str(folder / "gone.sqlite")],
        [release, "--ledger", str(folder / "text.sqlite")],
        [release, "--ledger", str(folder)],
        [release, "--config", str(folder / "gone.toml")],
        [release, "--trips"],
        [release, "--trips", str(folder / "gone.parquet")],
        [release, "--trips", str(folder / "other.parquet")],
        [release, "--out", str(folder / "exists.html")],
        [release, "--out", str(folder / "no" / "such.html")],
        [release, "--out", str(folder / "release" / "audit.html")],
        [release, "--json", str(folder / "release" / "features" / "audit.json")],
        [release, "--trips", str(folder / "trips.parquet"), "--out", str(folder / "release" / "x.html")],
        [release, "--out", str(folder / "a.html"), "--json", str(folder / "a.html")],
    ]
    before = sorted(folder.rglob("*"))
    for argv in bad:
        assert cli.main(["audit", *argv]) == 2, argv
        said = capsys.readouterr()
        assert said.out == "", argv
        assert said.err.startswith("cbdp: ")
        assert said.err.count("\n") == 1, argv
    assert sorted(folder.rglob("*")) == before


def test_a_manifest_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder whose manifest cannot be read is no release of ours."""
    for text in ("{", "[]", '{"format": "another"}'):
        (folder / "release" / "manifest.json").write_text(text)
        assert run(folder) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_sensitive_page_stays_out_of_every_release(folder: Path) -> None:
    """With the trips, no file may go into any folder that holds a release, be it another one."""
    shutil.copytree(folder / "release", folder / "second")
    options = ["--trips", "--config", str(folder / "cbdp.toml"), "--out", str(folder / "second" / "a.html")]
    assert run(folder, *options) == 2
    assert not (folder / "second" / "a.html").exists()


DESCRIBED = """
epsilon = 2

[[table]]
name = "by stop"
file = "stops.csv"
keys = ["time", "stop"]
count = "count"
noise = { law = "discrete-laplace", scale = 1 }
threshold = 5
zeros = "skipped"
"""


def test_tables_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A described folder is attacked: 1 where it claims pure ε and skips zeros, 0 where it claims nothing, 2 where it is wrong."""
    rows = [f"{8 + i % 4}:00,S{i // 4},{5 + i * 7 % 30}" for i in range(40)]
    (tmp_path / "stops.csv").write_text("\n".join(["time,stop,count", *rows]) + "\n")
    (tmp_path / "audit.toml").write_text(DESCRIBED)
    assert cli.main(["audit", str(tmp_path)]) == 1
    assert "needs a larger δ than claimed" in capsys.readouterr().out
    (tmp_path / "audit.toml").write_text(DESCRIBED.replace("epsilon = 2", ""))
    assert cli.main(["audit", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "nothing is claimed" in said
    assert "  weakness " in said
    assert cli.main(["audit", str(tmp_path), "--ledger", str(tmp_path / "l.sqlite")]) == 2
    capsys.readouterr()
    (tmp_path / "audit.toml").write_text(DESCRIBED.replace('"stop"]', '"station"]'))
    assert cli.main(["audit", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_findings_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON holds the same findings as the table on the screen."""
    change(folder, "features/zone.parquet", "count", 0, 1)
    assert run(folder, "--json", str(folder / "audit.json")) == 1
    said, stated = capsys.readouterr().out, json.loads((folder / "audit.json").read_text())
    assert stated["verdict"] == "contradicts"
    assert stated["subject"] == "release"
    for finding in stated["findings"]:
        assert finding["title"] in said
    assert len(stated["findings"]) == len(audit(folder / "release").findings)


def test_the_command_is_loaded_when_it_is_asked_for() -> None:
    """`import cbdp.audit` and `cbdp audit --help` load no solver and no data engine of their own accord."""
    script = (
        "import sys, cbdp.audit; heavy = ['scipy', 'numba', 'pyarrow', 'duckdb'];"
        "print([m for m in heavy if m in sys.modules], sorted(set(cbdp.audit.__all__) - set(dir(cbdp.audit))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cbdp.audit.nonsense


# Other mechanisms


def small() -> tuple[cbdp.FeatureDag, cbdp.Counts]:
    """600 trips over 4,800 types, some of them crowded."""
    stops = cbdp.Dimension([f"S{i}" for i in range(20)], zone=[f"Z{i // 5}" for i in range(20)])
    universe = cbdp.Universe(origin=stops, destination=stops, time=cbdp.periods("06:00", "18:00", "1h"))
    dag = cbdp.FeatureDag(
        universe,
        [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "destination.zone", "time"])],
    )  # fmt: skip
    rng = np.random.default_rng(3)
    counts = np.bincount((rng.beta(0.6, 2, 3000) * universe.size).astype(np.int64), minlength=universe.size)
    return dag, cbdp.count(counts, universe)


HONEST: dict[str, Callable[[cbdp.FeatureDag], object]] = {
    "constraint-based": lambda dag: cbdp.ConstraintBased(dag, 1),
    "sparse": lambda dag: cbdp.ConstraintBased(dag, 2, sparse=True),
    "measured in part": lambda dag: cbdp.ConstraintBased(
        dag, 1, measured=["zone", "singleton"], weights="inverse-variance"
    ),
    "exact total": lambda dag: cbdp.ConstraintBased(
        dag, 1, weights={"total": float("inf")}, budget="geometric"
    ),
    "laplace": lambda dag: cbdp.Laplace(dag, 1),
    "laplace, sparse": lambda dag: cbdp.Laplace(dag, 1, sparse=True),
    "laplace, geometric": lambda dag: cbdp.Laplace(dag, 1, law="geometric"),
    "hierarchical": lambda dag: cbdp.Hierarchical(dag, 1),
    "threshold, zeros perturbed": lambda dag: cbdp.ThresholdLaplace(
        dag, 2, zeros="perturbed", threshold=4, tables=["zone"]
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_mechanisms_pass(name: str, tmp_path: Path) -> None:
    """No finding speaks against a release of any mechanism, with the truth at hand (false alarms: 10⁻⁶); hidden counts may be a weakness."""
    dag, counts = small()
    release = HONEST[name](dag).release(counts)
    release.save(tmp_path / "release")
    done = audit(tmp_path / "release", trips=counts)
    assert done.of("contradicts") == []
    assert [f for f in done.of("weakness") if release.mechanism != "threshold-laplace"] == []
    assert {"residuals", "composition", "tables"} <= {f.check for f in done.findings}


def test_trips_that_do_not_follow_are_found_for_closed_forms(tmp_path: Path) -> None:
    """Trips of the hierarchical and the Laplace mechanism are made again from the noisy answers; the type is named."""
    dag, counts = small()
    for mechanism in (cbdp.Hierarchical(dag, 3), cbdp.Laplace(dag, 3)):
        release = mechanism.release(counts)
        value = release.value.copy()
        value[7] += 1
        replace(release, value=value).save(tmp_path / mechanism.name)
        words = " · ".join(map(str, dag.universe.unrank(int(release.index[7]))))
        found = audit(tmp_path / mechanism.name).of("contradicts")
        assert any(f.check == "estimate" and words in f.title for f in found)


def test_a_stability_histogram_whose_threshold_is_too_low(tmp_path: Path) -> None:
    """δ follows from threshold and scale; one that is claimed smaller contradicts the manifest's own numbers."""
    dag, counts = small()
    mechanism = cbdp.StabilityHistogram(dag, 4)
    given = cbdp.Counts(counts.universe, counts.index, counts.value, mechanism.protects)
    mechanism.release(given).save(tmp_path / "release")
    assert not [f for f in audit(tmp_path / "release").of("contradicts") if f.check == "composition"]
    path = tmp_path / "release" / "manifest.json"
    manifest = json.loads(path.read_text())
    for feature in manifest["features"]:
        if feature["noise"] is not None:
            feature["noise"]["threshold"] -= 5
    path.write_text(json.dumps(manifest))
    found = [f for f in audit(tmp_path / "release").of("contradicts") if f.check == "composition"]
    assert len(found) == 3
    assert all("too low for its δ" in f.title for f in found)


def test_a_simulation_is_a_weakness(tmp_path: Path) -> None:
    """It does not claim to protect, so it contradicts nothing; but nobody should take it for a release."""
    dag, counts = small()
    cbdp.ConstraintBased(dag, 1).simulate(counts, 0).save(tmp_path / "release", simulation=True)
    done = audit(tmp_path / "release")
    assert done.of("contradicts") == []
    assert ["simulation" in f.title for f in done.of("weakness") if f.check == "status"] == [True]


# With the trips


def stated(
    dag: cbdp.FeatureDag, counts: cbdp.Counts, epsilon: int, draw: Callable[[str, np.ndarray], np.ndarray]
) -> Release:
    """A release that claims ε and looks right in every file, whose noise is drawn by somebody else's rule."""
    mechanism = cbdp.ConstraintBased(dag, epsilon, preset="paper")
    share = Fraction(epsilon, len(dag.features))
    measured = [
        Measurement(name, (truth := counts.of(dag, name)) + draw(name, truth), scale=1 / share, epsilon=share)
        for name in dag.features
    ]
    estimate = cbdp.post_process(dag, measured)
    whole = round_trips(dag, *estimate.trips())
    return Release(
        dag, mechanism.name, mechanism.claim(), whole.index, whole.value, measured, estimate,
        rounding=whole.violation, source=mechanism,
    )  # fmt: skip


def honest(name: str, truth: np.ndarray) -> np.ndarray:
    return GeometricSampler(Fraction(4)).sample(len(truth))


def halved(name: str, truth: np.ndarray) -> np.ndarray:
    return GeometricSampler(Fraction(2)).sample(len(truth))


def zeros_skipped(name: str, truth: np.ndarray) -> np.ndarray:
    return np.where(truth == 0, 0, honest(name, truth))


def only_zeros(name: str, truth: np.ndarray) -> np.ndarray:
    return np.where(truth == 0, honest(name, truth), 0)


def one_sided(name: str, truth: np.ndarray) -> np.ndarray:
    return np.abs(honest(name, truth))


def some_exact(name: str, truth: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(truth)) % 3 == 0, 0, honest(name, truth))


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (halved, "singleton: the noise on true zeros is not of its declared law"),
        (zeros_skipped, "singleton: true zeros were published without noise"),
        (only_zeros, "singleton: the noise on other counts is not of its declared law"),
        (one_sided, "singleton: the noise on true zeros is not of its declared law"),
        (some_exact, "singleton: the noise on true zeros is not of its declared law"),
    ],
)
def test_noise_of_another_law_is_found(
    tmp_path: Path, draw: Callable[[str, np.ndarray], np.ndarray], words: str
) -> None:
    """Without the trips such a release may look right; with them the noise gives it away."""
    dag, counts = small()
    stated(dag, counts, 1, draw).save(tmp_path / "release")
    done = audit(tmp_path / "release", trips=counts)
    assert words in [f.title for f in done.of("contradicts")]
    assert done.sensitive
    found = next(f for f in done.findings if f.title == words)
    assert found.figures["log10 of the odds"] > 6 or "distribution" in found.evidence


def test_the_same_release_with_honest_noise_passes(tmp_path: Path) -> None:
    """The test above fails for the noise alone: the same construction with the declared law is clear."""
    dag, counts = small()
    stated(dag, counts, 1, honest).save(tmp_path / "release")
    assert audit(tmp_path / "release", trips=counts).of("contradicts") == []


def test_zeros_left_out_of_a_sparse_release_are_found() -> None:
    """Where only what exceeds a floor is published, zeros that never show give themselves away by their absence."""
    dag, counts = small()
    release = cbdp.ConstraintBased(dag, 1, sparse=True).release(counts)
    single = release.measurements[-1]
    kept = np.isin(single.elements, counts.index)
    fewer = replace(single, values=single.values[kept], elements=single.elements[kept], variance=None)
    broken = replace(release, measurements=[*release.measurements[:-1], fewer])
    true = records.truth(counts, release)
    assert [f.verdict for f in records.attack(release, true)] == ["clear"]
    found = [f for f in records.attack(broken, true) if f.verdict == "contradicts"]
    assert [f.title for f in found] == ["singleton: true zeros were published without noise"]


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(4)])
def test_the_laws_are_the_samplers(rounded: bool, scale: Fraction) -> None:
    """Probabilities add up, the distribution function is their sum, and 200,000 samples agree (chance 10⁻⁹)."""
    law = records.Law(float(scale), rounded)
    z = np.arange(-400, 401)
    pmf = np.exp(law.log_pmf(z))
    assert abs(pmf.sum() - 1) < 1e-12
    assert np.allclose(np.cumsum(pmf), np.exp(law.log_cdf(z)), atol=1e-12)
    assert abs(float(pmf @ np.abs(z)) - law.mean_size()) < 1e-9
    drawn = (RoundedSampler if rounded else GeometricSampler)(scale).sample(200_000)
    for value in range(-3, 4):
        p, hits = float(np.exp(law.log_pmf(np.array([value])))[0]), int((drawn == value).sum())
        assert binom.ppf(1e-9 / 14, 200_000, p) <= hits <= binom.isf(1e-9 / 14, 200_000, p)


def test_the_odds_are_an_e_value() -> None:
    """Summed over all outcomes the odds of each other law come to 1 (to at most 1): no false alarm can hide there."""
    law = records.Law(2.0)
    dag, counts = small()
    answers = records.noised(cbdp.ConstraintBased(dag, 1).simulate(counts, 0))[0]
    answers = replace(answers, law=law)
    expected = np.zeros(len(records.FACTORS) + len(records.SHARES))
    none = np.empty(0, dtype=np.int64)
    floor = 3
    for z in range(floor + 1, 500):  # visible
        group = records.Group(answers, "other counts", np.array([z]), np.array([1]), none, none, expected=1.0)
        expected += np.exp(group.log_odds() + law.log_pmf(np.array([z])))
    hidden = records.Group(
        answers, "other counts", none, none, np.array([floor]), np.array([1]), expected=1.0
    )
    expected += np.exp(hidden.log_odds() + law.log_cdf(np.array([floor])))
    assert np.allclose(expected, 1, atol=1e-5)


def test_persons_beyond_the_bound_are_left_out(tmp_path: Path) -> None:
    """What a person with too many trips added is not known: counts with their trips are not tested, others are."""
    rng = np.random.default_rng(1)
    stops = [f"S{i}" for i in range(30)]
    universe = cbdp.Universe(origin=stops, destination=stops)
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("from", by="origin")])
    n = 3000
    card = np.where(rng.random(n) < 0.1, 0, rng.integers(1, 2500, n))  # card 0 has hundreds of trips
    trips = {
        "origin": [stops[i] for i in rng.integers(0, 30, n)],
        "destination": [stops[i] for i in rng.integers(0, 30, n)],
        "card": card.tolist(),
    }
    release = cbdp.ConstraintBased(dag, 2, unit=cbdp.Person("card", 4)).release(trips)
    release.save(tmp_path / "release")
    true = records.truth(trips, release)
    heavy = {c for c in set(card.tolist()) if (card == c).sum() > 4}
    types = universe.rank_codes(
        [np.array([stops.index(s) for s in trips[d]]) for d in ("origin", "destination")]
    )
    assert set(true.loose.tolist()) == {int(t) for t, c in zip(types, card, strict=True) if c in heavy}
    assert true.total == sum(c not in heavy for c in card.tolist())
    assert all(1 <= len(r) <= 4 for r in true.riders)
    done = audit(tmp_path / "release", trips=trips)
    assert done.of("contradicts") == []
    assert any("Persons with more trips" in words for words in done.left_out)
    assert "residuals" in {f.check for f in done.findings}


# Membership


def test_the_attack_reaches_the_bound_of_one_table(tmp_path: Path) -> None:
    """For geometric noise on one table the advantage is tanh(ε/2) exactly: over 4,000 riders it is within 0.1 of it."""
    stops = [f"S{i}" for i in range(80)]
    universe = cbdp.Universe(origin=stops, destination=stops)
    dag = cbdp.FeatureDag(universe, [])
    counts = cbdp.count(np.ones(universe.size, dtype=np.int64), universe)
    release = cbdp.Laplace(dag, 1, law="geometric").release(counts)
    made, _ = membership.trials(release, records.truth(counts, release))
    n = len(made.member)
    assert n > 4000
    r = np.exp(-1)
    # TPR is 1/(1+r) and FPR r/(1+r); each of n trials is independent of the others
    for hits, p in ((made.caught, 1 / (1 + r)), (made.falsely, r / (1 + r))):
        assert binom.ppf(1e-8, n, p) <= hits <= binom.isf(1e-8, n, p)
    assert abs(membership.bound(1) - (1 - r) / (1 + r)) < 1e-12
    [found] = membership.attack(release, records.truth(counts, release))
    assert found.verdict == "clear"


def test_riders_are_recognised_where_noise_is_missing() -> None:
    """A release with a tenth of the noise that its ε needs lets riders be told apart beyond the bound."""
    stops = [f"S{i}" for i in range(40)]
    universe = cbdp.Universe(origin=stops, destination=stops)
    dag = cbdp.FeatureDag(universe, [])
    counts = cbdp.count(np.ones(universe.size, dtype=np.int64), universe)
    release = cbdp.Laplace(dag, 10, law="geometric").release(counts)
    claimed = cbdp.Laplace(dag, 1, law="geometric")
    [m] = release.measurements
    m = replace(m, scale=Fraction(1), variance=None, epsilon=Fraction(1))
    liar = replace(release, claim=claimed.claim(), measurements=[m], source=claimed)
    [found] = membership.attack(liar, records.truth(counts, liar))
    assert found.verdict == "contradicts"
    assert found.figures["advantage at least"] > membership.bound(1)


def test_riders_on_trial_share_no_count() -> None:
    """No two riders of the independent trials have an element in common, in any table used."""
    rng = np.random.default_rng(0)
    stops = [f"S{i}" for i in range(40)]
    universe = cbdp.Universe(origin=stops, destination=stops, time=["a", "b"])
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("pair", by=["origin", "destination"])])
    counts = cbdp.count(rng.integers(0, 3, universe.size), universe)
    release = cbdp.ConstraintBased(dag, 1).release(counts)
    true = records.truth(counts, release)
    scored = [membership._scored(a, true, true.riders) for a in records.noised(release)]
    chosen, apart = membership._chosen(scored, len(true.riders))
    assert {s.answers.name for s in chosen} == {"pair", "singleton"}
    assert len(apart) >= membership.LEAST
    for s in chosen:
        here = np.isin(s.rider, apart)
        assert len(np.unique(s.element[here])) == here.sum()


def test_an_audit_is_its_gravest_finding() -> None:
    """A contradiction outweighs weaknesses, these what is clear; nothing at all is clear."""
    clear, weak, bad = (Finding("c", v, "t", "e") for v in ("clear", "weakness", "contradicts"))
    assert Audit("x", ()).verdict == "clear"
    assert Audit("x", (clear, weak)).verdict == "weakness"
    assert Audit("x", (clear, weak, bad)).verdict == "contradicts"
