"""What a manifest says, and what its own numbers say: fields that were changed are named."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from audited import edited, manifest_of, run, small, write_manifest

import cbdp
from cbdp.audit import guarantee_check
from cbdp.audit.own_release import open_own_release


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


def another_rounding(m: dict) -> None:
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
        (another_rounding, "manifest.json: rounding/exact is not what follows"),
        (another_universe, "manifest.json: universe/sha256 is not what follows"),
        (lambda m: m.pop("privacy"), "manifest.json is not as cbdp writes it"),
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
        ours = open_own_release(folder / "release")
        found = list(ours.findings)
        if not any(f.check == "manifest" and ours.release is None for f in found):
            found += [
                *guarantee_check.attack(ours.manifest),
                *guarantee_check.attack_ledger(folder / "ledger.sqlite", ours),
            ]
        assert any(f.verdict == "contradicts" for f in found), (path, value)


def test_a_stability_histogram_whose_threshold_is_too_low(tmp_path: Path) -> None:
    """δ follows from threshold and scale; one that is claimed smaller contradicts the manifest's own numbers."""
    dag, counts = small()
    mechanism = cbdp.StabilityHistogram(dag, 4)
    given = cbdp.Counts(counts.universe, counts.index, counts.value, mechanism.unit)
    mechanism.release(given).save(tmp_path / "release")
    assert not [
        f for f in cbdp.audit_release(tmp_path / "release").of("contradicts") if f.check == "composition"
    ]
    path = tmp_path / "release" / "manifest.json"
    manifest = json.loads(path.read_text())
    for feature in manifest["features"]:
        if feature["noise"] is not None:
            feature["noise"]["threshold"] -= 5
    path.write_text(json.dumps(manifest))
    found = [
        f for f in cbdp.audit_release(tmp_path / "release").of("contradicts") if f.check == "composition"
    ]
    assert len(found) == 3
    assert all("too low for its δ" in f.title for f in found)


def test_a_simulation_is_a_weakness(tmp_path: Path) -> None:
    """It does not claim to protect, so it contradicts nothing; but nobody should take it for a release."""
    dag, counts = small()
    cbdp.ConstraintBased(dag, 1).simulate(counts, 0).save(tmp_path / "release", simulation=True)
    done = cbdp.audit_release(tmp_path / "release")
    assert done.of("contradicts") == []
    assert ["simulation" in f.title for f in done.of("weakness") if f.check == "status"] == [True]
