"""The attacks of the audit on releases of the generated Opal taps, and on the rows that the assessment prints.

Claim: no attack finds anything in the constraint-based tables; scale and secret trips of the suppressed ones are recovered (docs/explanation/audit.md).

python -m benchmarks attacks [--quick] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections import Counter
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import markdown
from benchmarks.harness.opal_taps import CREMORNE, MANLY, QUAY_3, TIMES, OpalTaps, opal_taps
from benchmarks.opal import MECHANISMS, UNIT, tables_of
from cbdp.audit import consistency, detection, differencing, scale_recovery
from cbdp.audit.tables import CountTable, PublishedTables, from_release, with_public_support
from cbdp.features import SINGLETON, FeatureDag
from cbdp.mechanisms import Mechanism, ThresholdLaplace
from cbdp.privacy.noise import noise_distribution

Ints = NDArray[np.int64]

P, THRESHOLD = 1.4, 18
ROWS = {"Manly Wharf": 91.0, "Circular Quay No. 3 Wharf": 41.0, "Cremorne Point Wharf": 0.0}
ATTACKED = ("stability histogram 1, 1, 2", "threshold Laplace", "constraint-based, uniform")

SAID = {
    "hidden": "hidden counts by time and place",
    "found": "counts and sums of counts with an unbiased estimate",
    "holds": "their 95 % interval holds",
    "telling counts": "single counts that are told more narrowly than suppression leaves open",
    "telling sums": "small sums that are",
    "secret": "days on which the secret ferry is hidden",
    "secret told": "days on which its count is told",
    "not clear": "findings that are not clear, over all checks",
}


def assessed_rows() -> PublishedTables:
    """The rows of the assessment's Table 2, with the wharf that is missing there."""
    noise = noise_distribution("laplace", P)
    keys = {"time": np.full(3, "00:00"), "loc": np.array(list(ROWS))}
    both = CountTable("time-loc", keys, np.array(list(ROWS.values())), noise, THRESHOLD, shows_zeros=False)
    time = CountTable(
        "time", {"time": np.array(["00:00"])}, np.array([150.0]), noise, THRESHOLD, shows_zeros=False
    )
    return PublishedTables((both, time), epsilon=8)


def taps_off(taps: OpalTaps, dag: FeatureDag, day: str) -> Ints:
    part = taps.parts[day, "ferry"]
    index = dag.universe.rank_codes([part["off_time"], part["off_location"]])
    return np.bincount(index, minlength=dag.universe.size).astype(np.int64)


def attacked(mechanism: Mechanism, truth: Ints, timetable: NDArray[np.bool_], seed: int) -> Counter[str]:
    """What the attacks find in one release of the tap-offs of a day, by someone who knows the timetable."""
    published = from_release(mechanism.simulate(truth, seed))
    known = timetable | (published[SINGLETON].counts > 0)
    published = with_public_support(published, SINGLETON, known)
    own = truth[known]
    seen: Counter[str] = Counter(hidden=int((~published[SINGLETON].shown).sum()))
    found = [p for p in differencing.identified_counts(published) if p.table == SINGLETON]
    for p in found:
        seen["found"] += 1
        seen["holds"] += bool(p.low - 1e-9 <= own[list(p.rows)].sum() <= p.high + 1e-9)
        seen["telling sums"] += p.informative and not p.single
        seen["telling counts"] += p.informative and p.single
    late = int(published[SINGLETON].find({"time": ["00:00"], "location": [CREMORNE]})[0])
    if not published[SINGLETON].shown[late]:
        seen["secret"] += 1
        seen["secret told"] += any(p.informative and p.rows == (late,) for p in found)
    findings = [
        *scale_recovery.attack(published),
        *detection.attack(published),
        *consistency.attack(published),
    ]
    seen["not clear"] = sum(f.verdict != "clear" for f in [*findings, *differencing.attack(published)])
    return seen


def manly(taps: OpalTaps, days: tuple[str, ...], p: Fraction) -> scale_recovery.ScaleFit:
    """The scale of the Second Algorithm as the Manly ferry's two ends betray it."""
    dag = taps.features("ferry")
    labels = np.array([str(v) for v in TIMES.values])
    differences = []
    for seed, day in enumerate(days):
        made = ThresholdLaplace(dag, UNIT.sensitivity / p, UNIT, tables=[SINGLETON])
        table = from_release(made.simulate(taps.counts(day, "ferry"), seed))[SINGLETON]
        for start, end in ((MANLY, QUAY_3), (QUAY_3, MANLY)):
            on = table.find({"tap": np.full(94, "on"), "time": labels[:-2], "location": np.full(94, start)})
            off = table.find({"tap": np.full(94, "off"), "time": labels[2:], "location": np.full(94, end)})
            one, other = table.counts[on], table.counts[off]
            far = (one + other) / 2 >= THRESHOLD + scale_recovery.MIN_SCALES_ABOVE_THRESHOLD * float(p)
            differences.append((one - other)[far & (one > 0) & (other > 0)])
    value = np.concatenate(differences)
    noise = noise_distribution("geometric", float(p))
    group = scale_recovery.Residuals(
        "the Manly ferry", value, noise, noise, np.ones(len(value), np.int64), True
    )
    return scale_recovery.fit_scale(group, 0.95)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks attacks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three days only")
    parser.add_argument("--seed", type=int, default=0, help="of the synthetic taps")
    options = parser.parse_args(argv)
    taps = opal_taps(seed=options.seed)
    days = taps.days[-3:] if options.quick else taps.days
    print("# The attacks on Opal's tables\n\n## The assessment's rows\n")
    print_assessed()
    dag = tables_of(taps, "ferry")
    timetable = np.sum([taps_off(taps, dag, day) for day in taps.days], axis=0) > 0
    print(f"\n## Generated taps: tap-offs of ferries, {len(days)} days\n")
    columns = {
        name: sum(
            (
                attacked(MECHANISMS[name](dag), taps_off(taps, dag, day), timetable, seed)
                for seed, day in enumerate(days)
            ),
            start=Counter[str](),
        )
        for name in ATTACKED
    }
    rows = [[words, *(f"{c[name]:,}" for c in columns.values())] for name, words in SAID.items()]
    print(markdown(["", *ATTACKED], rows))
    fit = manly(taps, days, Fraction(7, 5))
    print(
        f"\nManly ferry: {fit.pairs} pairs give p = {fit.scale:.2f} (95 %: {fit.low:.2f} to {fit.high:.2f}); it is 1.4."
    )
    return 0 if columns[ATTACKED[2]]["not clear"] == 0 else 1


def print_assessed() -> None:
    rows = []
    for group in detection.GROUP_SIZES:
        chances = [
            detection.detection_probability(noise_distribution(law, P), THRESHOLD, group)
            for law in ("laplace", "rounded")
        ]
        rows.append(
            [
                str(group),
                f"{detection.assessed_delta(P, THRESHOLD, group):.2g}",
                *(f"{c:.2g}" for c in chances),
            ]
        )
    print(markdown(["people", "assessment: density", "chance", "chance, rounded"], rows))
    for confidence in (0.95, 0.99):
        [found] = differencing.identified_counts(assessed_rows(), confidence)
        half = found.estimate - found.low
        print(
            f"\nS − X − Y = {found.estimate:.0f}, standard deviation {found.deviation:.2f}; "
            f"{100 * confidence:g} %: ± {half:.2f} (suppression alone: 0 to {found.before:.1f})"
        )
