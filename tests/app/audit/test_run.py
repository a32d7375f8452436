"""Audits from end to end: honest releases of every mechanism pass, and what was not looked at is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from audited import run, small

import cbdp


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
    done = cbdp.audit_release(tmp_path / "release", trips=counts)
    assert done.of("contradicts") == []
    assert [f for f in done.of("weakness") if release.mechanism != "threshold-laplace"] == []
    assert {"residuals", "composition", "tables"} <= {f.check for f in done.findings}
