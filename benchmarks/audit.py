"""What attacks prove about every mechanism's ε or ρ, beside its claim; and how surely they catch the broken ones.

Claim: no lower bound on ε or ρ exceeds a mechanism's claim, and every broken mechanism is caught (docs/explanation/audit.md).

python -m benchmarks audit [--repeats 100] [--jobs 1] [--seed 0] [--only NAME …]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

import cbdp
from benchmarks.harness.markdown import markdown
from cbdp.audit import guarantee_check
from cbdp.audit.lower_bound import LowerBound
from cbdp.release.manifest_model import Manifest
from tests.misstated import DAG, MISSTATED, TRUTH
from tests.zoo import HONEST, NARROW, ZOO, Case
from tests.zoo_rho import FORGOTTEN, HONEST_RHO, ZOO_RHO, RhoCase

CONFIDENCE = 0.95
STATED = "DeltaForgotten (ρ)"  # attacked by the ε that it states
GOOD: Mapping[str, Case | RhoCase] = {**HONEST, **{f"{n} (ρ)": case for n, case in HONEST_RHO.items()}}
BROKEN: Mapping[str, Case | RhoCase] = {
    **ZOO,
    **NARROW,
    **{f"{n} (ρ)": case for n, case in ZOO_RHO.items()},
    STATED: FORGOTTEN,
}
ALL = {**GOOD, **BROKEN}


def attacks(names: Sequence[str], seeds: Sequence[int], jobs: int) -> Iterator[tuple[str, list[LowerBound]]]:
    """The bounds of each case, one for each seed; progress goes to the error stream."""
    if jobs == 1:
        for name in names:
            yield name, [_attack(name, seed) for seed in seeds]
        return
    with ProcessPoolExecutor(jobs) as pool:
        for name in names:
            yield name, list(pool.map(partial(_attack, name), seeds, chunksize=5))


def _attack(name: str, seed: int) -> LowerBound:
    print(f"\raudit: {name}, seed {seed}" + " " * 20, end="", file=sys.stderr)
    case = ALL[name]
    return case.attack_stated(seed) if name == STATED and isinstance(case, RhoCase) else case.attack(seed)


def honest_row(name: str, bound: LowerBound) -> list[str]:
    case = ALL[name]
    return [name, _claim(bound), f"{bound.value:.3f}", f"{case.reach:g}", f"{case.trials:,}"]


def _claim(bound: LowerBound) -> str:
    return f"{bound.sign} = {bound.claim:.3g}"


def caught_row(name: str, bounds: Sequence[LowerBound]) -> list[str]:
    """Catches with the limit that they give for the chance of one, and how far the bounds stay away from the claim."""
    found = np.array([b.value for b in bounds])
    caught = int(sum(b.exceeds for b in bounds))
    least = float(stats.beta.ppf(1 - CONFIDENCE, caught, len(bounds) - caught + 1)) if caught else 0.0
    away = float((found.mean() - (bounds[0].claim or 0.0)) / max(found.std(), 1e-9))
    margin = f"{away:.1f}" if away < 100 else "over 100"
    row = [name, _claim(bounds[0]), f"{found.mean():.2f}", f"{found.min():.2f}", margin]
    return [*row, f"{caught} of {len(bounds)}", f"{least:.3f}", f"{ALL[name].trials:,}"]


def misstated_rows() -> list[list[str]]:
    """Manifests that state what does not follow from ρ, and what the audit says of each; the unchanged one first."""
    release = cbdp.ConstraintBased(DAG, rho="1/2", law="gaussian", delta="1e-6").release(TRUTH)
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "release")
        text = (Path(folder) / "release" / "manifest.json").read_text(encoding="utf-8")
    rows = [["nothing", *_named(json.loads(text), "")]]
    for name, (edit, says) in MISSTATED.items():
        manifest = json.loads(text)
        edit(manifest)
        rows.append([name, *_named(manifest, says)])
    return rows


def _named(manifest: Manifest, says: str) -> tuple[str, str]:
    """What is found, and whether that is right: the words that name the change, or nothing where nothing was changed."""
    wrong = [f.title for f in guarantee_check.attack(manifest, DAG) if f.verdict == "contradicts"]
    named = next((title for title in wrong if says in title), wrong[0] if wrong else "–")
    right = any(says in title for title in wrong) if says else not wrong
    return named.removeprefix("manifest.json: "), "yes" if right else "NO"


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    wanted = options.only or list(ALL)
    good = _honest([n for n in GOOD if n in wanted], options.seed, options.jobs)
    seeds = range(options.seed, options.seed + options.repeats)
    good &= _broken([n for n in BROKEN if n in wanted], seeds, options.jobs)
    if not options.only:
        rows = misstated_rows()
        good &= all(row[-1] == "yes" for row in rows)
        print(
            "\nManifests of a release with Gaussian noise (ρ = 1/2, δ = 10⁻⁶), changed, and what the audit says.\n"
        )
        print(markdown(["changed", "finding", "right"], rows), flush=True)
    print(
        f"\nNo honest mechanism is refuted and every attack has power, every broken one is always caught: {'yes' if good else 'NO'}"
    )
    return 0 if good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks audit", description=__doc__)
    parser.add_argument("--repeats", type=int, default=100, help="attacks on each broken mechanism")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="of the first attack")
    parser.add_argument("--only", nargs="+", choices=list(ALL), metavar="NAME", help="some of the mechanisms")
    return parser


def _honest(names: Sequence[str], seed: int, jobs: int) -> bool:
    print(
        "# The claims, attacked\n\nThe largest ε or ρ that an attack proves, with a false alarm of one in a million. "
        "One event shows at most 2/π of the ρ of Gaussian noise.\n"
    )
    good, rows = True, []
    for name, bounds in attacks(names, [seed], jobs):
        good &= not bounds[0].exceeds and bounds[0].value >= ALL[name].reach
        rows.append(honest_row(name, bounds[0]))
    if rows:
        print(markdown(["mechanism", "claim", "proven", "wanted", "trials"], rows), flush=True)
    return good


def _broken(names: Sequence[str], seeds: Sequence[int], jobs: int) -> bool:
    good, rows = True, []
    for name, bounds in attacks(names, seeds, jobs):
        good &= all(b.exceeds for b in bounds)
        rows.append(caught_row(name, bounds))
    print(file=sys.stderr)
    if rows:
        print(
            f"\nBroken mechanisms, {len(seeds)} attacks on each. Margin: how many standard deviations the mean bound"
        )
        print(
            f"is above the claim. Chance: at least this, with {CONFIDENCE:.0%} confidence from the catches alone.\n"
        )
        header = ["broken", "claim", "mean", "least", "margin", "caught", "chance", "trials"]
        print(markdown(header, rows), flush=True)
    return good
