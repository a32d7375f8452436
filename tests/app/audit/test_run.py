"""Audits from end to end: honest releases of every mechanism pass, and what was not looked at is said."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from audited import as_version_1, change, correct_hashes, edited, manifest_of, run, small, write_manifest

import cbdp
from cbdp.errors import InputError
from cbdp.estimation.posterior import Posterior
from cbdp.progress import watched


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
    cbdp.audit_release(folder / "release", config=folder / "cbdp.toml", trips=True)
    assert before == {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_what_was_not_looked_at_is_said(folder: Path) -> None:
    """Without a ledger and without trips the audit says what it cannot know."""
    done = cbdp.audit_release(folder / "release")
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
    full = cbdp.audit_release(folder / "release", config=folder / "cbdp.toml", trips=True)
    assert {f.check for f in full.findings} >= {"ledger", "residuals"}
    assert full.sensitive


HIDING = Posterior(revealed=40)  # as if the types were too many to reveal all
HONEST: dict[str, Callable[[cbdp.FeatureDag], object]] = {
    "constraint-based": lambda dag: cbdp.ConstraintBased(dag, 1),
    "sparse": lambda dag: cbdp.ConstraintBased(dag, 2, sparse=True, estimator=HIDING),
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


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_honest_mechanisms_pass(name: str, tmp_path: Path) -> None:
    """No finding speaks against a release of any mechanism, with the truth at hand (false alarms: 10⁻⁶); hidden counts may be a weakness."""
    dag, counts = small()
    release = HONEST[name](dag).release(counts)
    release.save(tmp_path / "release")
    done = cbdp.audit_release(tmp_path / "release", trips=counts)
    assert done.of("contradicts") == []
    assert [f for f in done.of("weakness") if release.mechanism != "threshold-laplace"] == []
    assert {"residuals", "composition", "tables"} <= {f.check for f in done.findings}


# Releases of version 1

OLD: dict[str, Callable[[cbdp.FeatureDag], cbdp.mechanisms.Mechanism]] = {
    "expected counts": lambda dag: cbdp.ConstraintBased(dag, 1),
    "projection": lambda dag: cbdp.ConstraintBased(dag, 1, preset="paper"),
    "sparse": lambda dag: cbdp.ConstraintBased(dag, 2, sparse=True, estimator=HIDING),
    "rounded noise": lambda dag: cbdp.Laplace(dag, 1),
    "tree": lambda dag: cbdp.Hierarchical(dag, 1),
    "zeros skipped": lambda dag: cbdp.StabilityHistogram(dag, 4, unit="trip", delta="1/100"),
    "zeros perturbed": lambda dag: cbdp.ThresholdLaplace(dag, 2, zeros="perturbed", threshold=4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OLD)
def test_a_release_of_version_1_is_audited_like_one_of_today(name: str, tmp_path: Path) -> None:
    """The same checks come to the same verdicts, and what was changed is found."""
    dag, counts = small()
    OLD[name](dag).release(counts).save(tmp_path / "release")
    today = cbdp.audit_release(tmp_path / "release", trips=counts)
    write_manifest(tmp_path, as_version_1(manifest_of(tmp_path)))
    assert {"version", "mechanism"} <= set(manifest_of(tmp_path))
    old = cbdp.audit_release(tmp_path / "release", trips=counts)
    assert old.findings == today.findings
    assert old.left_out == today.left_out
    assert old.of("contradicts") == []
    words = change(tmp_path, "trips.parquet", "count", 7, 1)
    correct_hashes(tmp_path)
    found = cbdp.audit_release(tmp_path / "release").of("contradicts")
    assert any(words in f.title for f in found)


# Made again


@pytest.mark.slow
def test_tables_that_are_published_as_measured_tell_the_trips(tmp_path: Path) -> None:
    """Trips that are not those of the table of all types are found, and so is noise that the recipe does not give."""
    dag, counts = small()
    cbdp.ThresholdLaplace(dag, 2, zeros="perturbed", threshold=4).release(counts).save(tmp_path / "release")
    honest = cbdp.audit_release(tmp_path / "release")
    assert honest.of("contradicts") == []
    assert "estimate" in {f.check for f in honest.findings}
    edited(tmp_path, lambda m: m["features"][-1]["noise"].update(zeros="skipped"))
    titles = [f.title for f in cbdp.audit_release(tmp_path / "release").of("contradicts")]
    assert "manifest.json: features/singleton/noise is not what the recipe gives" in titles
    edited(tmp_path, lambda m: m["features"][-1]["noise"].update(zeros="perturbed"))
    words = change(tmp_path, "trips.parquet", "count", 7, 1)
    correct_hashes(tmp_path)
    found = [f for f in cbdp.audit_release(tmp_path / "release").of("contradicts") if f.check == "estimate"]
    assert [f.title for f in found] == [
        f"singleton: the count of {words} is not what the mechanism makes of the noisy answers"
    ]


def test_any_solver_makes_the_estimates_again(tmp_path: Path) -> None:
    """A release can be audited where the solver that was used is not installed: the solution is the same."""
    dag, counts = small()
    cbdp.ConstraintBased(dag, 1).release(counts).save(tmp_path / "release")
    edited(tmp_path, lambda m: m["recipe"]["settings"].update(solver="not installed here"))
    done = cbdp.audit_release(tmp_path / "release")
    assert done.of("contradicts") == []
    assert [f.verdict for f in done.findings if f.check == "estimate"] == ["clear", "clear"]


def test_what_cannot_be_made_again_is_left_out(tmp_path: Path) -> None:
    """Weights that are stated by their hash only, or a mechanism that is not installed, are no contradiction."""
    dag, counts = small()
    weights = {"zone": np.linspace(1, 2, dag.size("zone"))}
    cbdp.ConstraintBased(dag, 1, weights=weights).release(counts).save(tmp_path / "release")
    for mechanism in ("constraint-based", "of-another-package"):
        for name in ("manifest.json", "deployment.yaml"):
            path = tmp_path / "release" / name
            path.write_text(path.read_text().replace("constraint-based", mechanism))
        correct_hashes(tmp_path)
        done = cbdp.audit_release(tmp_path / "release")
        assert done.of("contradicts") == []
        assert "estimate" not in {f.check for f in done.findings}
        assert any("could not be made again" in words for words in done.left_out)


def test_a_manifest_chooses_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that points at a module is refused before anything is imported."""
    dag, counts = small()
    cbdp.ConstraintBased(dag, 1).release(counts).save(tmp_path / "release")
    (tmp_path / "evil.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(tmp_path)
    for edit in (
        lambda m: m["recipe"].update(mechanism="evil:Mechanism"),
        lambda m: (
            m["recipe"].update(mechanism="constraint-based")
            or m["recipe"]["settings"].update(rounding="evil:Rounding")
        ),
        lambda m: (
            m["recipe"]["settings"].update(rounding="few") or m["measurements"][0].update(law="evil:Law")
        ),
    ):
        edited(tmp_path, edit)
        with pytest.raises(InputError, match="names code to load, 'evil:"):
            cbdp.audit_release(tmp_path / "release")
    assert "evil" not in sys.modules


def test_long_work_tells_its_stages(folder: Path) -> None:
    """Whoever watches hears what is attacked, in order."""
    heard: list[str] = []
    with watched(lambda stage, _: heard.append(stage)):
        cbdp.audit_release(folder / "release", config=folder / "cbdp.toml", trips=True)
    wanted = [
        "reading the release, file by file", "adding up the manifest", "reading the ledger", "making the release again",
        "attack: consistency", "attack: scale", "attack: detection", "attack: differencing",
        "counting the trips (private)", "testing the noise", "inferring membership",
    ]  # fmt: skip
    assert [stage for stage in dict.fromkeys(heard) if stage in wanted] == wanted
