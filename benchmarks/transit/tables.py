"""The tables: what was found, beside what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from benchmarks.ablation.hierarchy import AS_IN_TEXT, EVERY, Reading
from benchmarks.harness.markdown import figure, markdown
from benchmarks.transit.city import AS_IS, SHORT, demand, heavy_share, place, riders
from benchmarks.transit.contestants import ANYWHERE, FLOOR, THROWN, VOLUME, counts_of
from benchmarks.transit.jobs import LIMIT, OPERATIONS, PERIOD, RULES, Job, Outcome, heavy
from benchmarks.transit.plan import FLAT, OURS, PROGRAMS, SHAPES, TAIL_LINES
from benchmarks.transit.published import METRICS, TABLE_1, TRIPS, laplace_trips
from benchmarks.transit.results import (
    Results,
    errors,
    mean,
    percents,
    standard_error,
    within,
    zone_error,
    zone_errors,
)
from benchmarks.transit.trees import AVERAGE, HEIGHTS, ROOT_MOST, published_order, trips
from cbdp.transit import Operations, figures, path_cover, simulate


def told(results: Results, section: str) -> list[str]:
    """The texts of a section."""
    days = results.plan.days
    if section == "table":
        said = [line for day in days for line in verdicts(results, day)]
        lines = "\n".join(f"- {claim}: {holds}" for claim, holds in said)
        return [*(table(results, day) for day in days for table in (table_1, signed)), lines]
    texts: dict[str, tuple[Callable[[Results], str], ...]] = {
        "epsilon": (epsilon, limits),
        "ours": (ours,),
        "tail": (tails,),
        "mix": (mix,),
        "rule": (originals, rules),
        "volume": (volume, operations),
        "service": (service,),
        "tree": (trees, orders),
    }
    return [make(results) for make in texts[section]]


def originals(results: Results) -> str:
    """The real service under both readings of the limit, and the no-pooling reference."""
    rows = []
    city, _ = place()
    for day, (name, period) in product(results.plan.days, RULES.items()):
        legs = riders(day, demand(day), 1)
        made = results.truth(day, period=period)
        service = simulate(city, made.fleet, legs)
        total = figures(service, city)["total"]
        alone = path_cover(city, legs, service.release, Operations(), wait=LIMIT).total
        shown = [
            figure(total[k])
            for k in ("wait", "wait95", "ride", "idle", "parked", "occupancy", "km", "unserved")
        ]
        rows.append(
            [
                f"{day}, {name}",
                f"{total['shuttles']:.0f}",
                " + ".join(map(str, made.fleet)),
                *shown,
                f"{alone}",
            ]
        )
    for day in results.plan.days:
        shuttles, wait, idle = TABLE_1[day]["original"]
        rows.append(
            [f"{day}, published", figure(shuttles), "", figure(wait), "", "", figure(idle), *[""] * 5]
        )
    header = ["limit holds for", "shuttles", "by zone", "wait", "95 %", "ride", "idle", "parked", "occupancy", "km", "unserved", "without pooling"]  # fmt: skip
    return markdown(header, rows)


def table_1(results: Results, day: str) -> str:
    """Relative errors at ε = 1 beside the published ones: means of absolute errors over runs ± standard error."""
    truth = results.truth(day)
    rows = []
    for name in (*results.plan.mechanisms, FLOOR):
        made = results.made(day, name)
        cells = [name]
        for k, metric in enumerate(METRICS):
            theirs = TABLE_1[day].get(name)
            cells += [
                within([abs(e) for e in errors(made, truth, metric)]),
                figure(theirs[k]) if theirs else "",
            ]
        by_zone = [zone_error(o, truth) for o in made if o.fleet]
        rows.append([*cells, within(by_zone), f"{sum(bool(o.fleet) for o in made)} of {len(made)}"])
    own = (truth.shuttles, truth.wait, truth.idle)
    pairs = [figure(v) for both in zip(own, TABLE_1[day]["original"], strict=True) for v in both]
    rows.append(["original", *pairs, "", ""])
    head = [f"{m}{p}" for m in METRICS for p in ("", ", published")]
    return markdown([day, *head, "shuttles by zone", "fleets found"], rows)


def signed(results: Results, day: str) -> str:
    """The same runs with signs: too many shuttles or too few, waits and idle times longer or shorter; zone by zone."""
    city, _ = place()
    truth = results.truth(day)
    rows = []
    for name in (*results.plan.mechanisms, FLOOR):
        made = results.made(day, name)
        cells = [name, *(percents(errors(made, truth, metric)) for metric in METRICS)]
        zones = np.array([zone_errors(o, truth) for o in made if o.fleet])
        cells += (
            [percents(list(zones[:, z])) for z in range(len(city.zones))]
            if len(zones)
            else ["–"] * len(city.zones)
        )
        cells += [
            f"{mean(o.trips for o in made):,.0f}",
            figure(mean(o.legs / o.trips for o in made if o.legs)),
            f"{mean(o.unserved for o in made):.0f}",
        ]
        rows.append(cells)
    rows.append(["original", f"{truth.shuttles:.0f}", f"{truth.wait:.0f} s", f"{truth.idle:,.0f} s", *map(str, truth.fleet), f"{truth.trips:,}", figure(truth.legs / truth.trips), str(truth.unserved)])  # fmt: skip
    return markdown([day, *METRICS, *city.zones, "trips", "legs a trip", "unserved"], rows)


def epsilon(results: Results) -> str:
    """Shuttles and wait over ε; where no fleet was found, the trips."""
    plan = results.plan
    rows = []
    for (rule, period), name in product(RULES.items(), plan.mechanisms):
        if period is None and heavy(name):
            continue
        rows.append([f"{name}, {rule}", *(_cell(results, name, e, period) for e in plan.epsilons)])
    for rule, period in RULES.items():
        thrown = ["", *[""] * (len(plan.epsilons) - 2), _cell(results, THROWN, plan.epsilons[-1], period)]
        rows.append([f"{THROWN}, {rule}", *thrown])
    for rule, period in RULES.items():
        truth = results.truth(plan.first, period=period)
        rows.append(
            [f"original, {rule}", *[f"{truth.shuttles:.0f} · {truth.wait:.0f} s"] * len(plan.epsilons)]
        )
    return markdown([f"{plan.first}, limit for", *(f"ε = {e}" for e in plan.epsilons)], rows)


def _cell(results: Results, name: str, e: str, period: int | None) -> str:
    made = results.made(results.plan.first, name, e, period=period, seeds=range(results.plan.runs))
    fleets = [o for o in made if o.fleet]
    if not fleets:
        return "no fleet found" if made else "–"
    lost = f" ({len(made) - len(fleets)} of {len(made)} found none)" if len(fleets) < len(made) else ""
    left = mean(o.unserved for o in fleets)
    refused = f" · {left:.0f} unserved" if left >= 0.5 else ""
    return f"{within([o.shuttles for o in fleets])} · {mean(o.wait for o in fleets):.0f} s{refused}{lost}"


def limits(results: Results) -> str:
    """The data sets on which no fleet was found: how many trips they have, and why."""
    rows = []
    for name, e in product(results.plan.mechanisms, results.plan.epsilons):
        made = results.made(results.plan.first, name, e, seeds=range(results.plan.runs))
        lost = [o for o in made if not o.fleet]
        if lost:
            theirs = figure(TRIPS[name, e]) if (name, e) in TRIPS else ""
            rows.append(
                [
                    name,
                    e,
                    f"{mean(o.trips for o in made):,.0f}",
                    theirs,
                    f"no fleet found in {len(lost)} of {len(made)}: {lost[0].reason}",
                ]
            )
    return markdown(["mechanism", "ε", "trips", "published", "what the search says"], rows)


def ours(results: Results) -> str:
    """The error in shuttles, signed and absolute, by zone, and the wait: O5 and the posterior's budgets, on the same seeds."""
    rows = []
    for day, e, name in product(results.plan.days, results.plan.epsilons, ("O5", *OURS)):
        truth = results.truth(day)
        made = results.made(day, name, e, seeds=range(results.plan.runs))
        fleets = [o for o in made if o.fleet]
        own, theirs = _absolute(results, day, name, e), _absolute(results, day, "O5", e)
        rows.append([
            f"{day}, ε = {e}", name, percents(errors(made, truth, "shuttles")), within(own),
            within([zone_error(o, truth) for o in fleets]), f"{mean(o.wait for o in fleets):.0f} s",
            f"{mean(o.unserved for o in fleets):.0f}", f"{len(fleets)} of {len(made)}",
            "" if name == "O5" else _no_larger(own, theirs),
        ])  # fmt: skip
    head = ["", "sized on", "shuttles", "error", "error by zone", "wait", "unserved", "fleets found", "no worse than O5"]  # fmt: skip
    return markdown(head, rows)


def _no_larger(one: Sequence[float], other: Sequence[float]) -> str:
    """Whether a mean is no larger than another, of runs with the same seeds.

    >>> _no_larger([0.1, 0.2], [0.1, 0.3]), _no_larger([0.2, 0.2], [0.1, 0.4]), _no_larger([0.4, 0.5, 0.4], [0.1, 0.1, 0.2])
    ('yes', 'yes', 'NO')
    >>> _no_larger([0.1, 0.5], [0.2, 0.3])
    'within two standard errors'
    """
    if not one or not other:
        return "no fleet found"
    gap = mean(one) - mean(other)
    if gap <= 0:
        return "yes"
    paired = [a - b for a, b in zip(one, other, strict=True)] if len(one) == len(other) else []
    around = standard_error(paired) if paired else math.hypot(standard_error(one), standard_error(other))
    return "within two standard errors" if gap <= 2 * around else "NO"


def tails(results: Results) -> str:
    """Signed errors in shuttles as the tail of demand gets heavier."""
    day, seeds = results.plan.first, range(results.plan.runs)
    rows = []
    for shape in SHAPES:
        counts, truth = demand(day, shape), results.truth(day, shape=shape)
        cells = [
            shape,
            f"{100 * heavy_share(counts):.0f} %",
            f"{int(counts.max()):,}",
            f"{truth.shuttles:.0f}",
            f"{truth.wait:.0f}",
        ]
        for name, e in TAIL_LINES:
            made = results.made(day, name, e, shape=shape, seeds=seeds)
            by_zone = mean(zone_error(o, truth) for o in made)
            cells.append(f"{percents(errors(made, truth, 'shuttles'))} · {figure(by_zone)}")
        rows.append(cells)
    names = [f"{n}, ε = {e}" if n in PROGRAMS else n for n, e in TAIL_LINES]
    return markdown(["counts", "trips in types of ≥ 50", "largest type", "shuttles", "wait", *names], rows)


def mix(results: Results) -> str:
    """Legs and shuttles of flattened demand, and of demand whose busiest types need the least driving."""
    day, seeds = results.plan.first, range(results.plan.runs)
    rows = []
    for shape in (AS_IS, SHORT):
        truth = results.truth(day, shape=shape)
        rows.append([f"D, {shape}", f"{truth.shuttles:.0f}", "", figure(truth.legs / truth.trips), ""])
        for name in (*PROGRAMS, *FLAT):
            made = results.made(day, name, shape=shape, seeds=seeds)
            rows.append([
                f"{name}, {shape}", figure(mean(o.shuttles for o in made)), percents(errors(made, truth, "shuttles")),
                figure(mean(o.legs / o.trips for o in made)), within([zone_error(o, truth) for o in made]),
            ])  # fmt: skip
    return markdown(["sized on", "shuttles", "error", "legs a trip", "error by zone"], rows)


def rules(results: Results) -> str:
    """Table 1's shuttles when the limit holds for each half hour, and for the two hours."""
    rows = []
    for day in results.plan.days:
        names = [*PROGRAMS, *(n for n in ("H5", "H4", "H3", "Lap") if day == results.plan.first)]
        for name in names:
            cells = [f"{day}, {name}"]
            for period in RULES.values():
                truth = results.truth(day, period=period)
                seeds = range(results.plan.few if heavy(name) else results.plan.runs)
                made = results.made(day, name, period=period, seeds=seeds)
                cells += [
                    within([abs(e) for e in errors(made, truth, "shuttles")]),
                    percents(errors(made, truth, "shuttles")),
                ]
            rows.append([*cells, figure(TABLE_1[day][name][0])])
    head = [f"{rule}{what}" for rule in RULES for what in ("", ", signed")]
    return markdown(["limit for", *head, "published"], rows)


def volume(results: Results) -> str:
    """Laplace's fleet taken apart: more trips, and trips spread over more types."""
    day = results.plan.first
    rows = []
    for name, what in (
        (None, "D"),
        (VOLUME, "as many trips as Lap, on D's types"),
        (ANYWHERE, "D's trips on any type"),
        ("Lap", "Lap"),
    ):
        made = results.found.get(Job(day, name))
        if made is None:
            continue
        busy = demand(day) if name is None else counts_of(name, "1", day, AS_IS, 0)
        cells = [
            what,
            f"{made.trips:,}",
            f"{int((busy > 0).sum()):,}",
            f"{made.shuttles:.0f}",
            f"{made.shuttles / results.truth(day).shuttles:.2f}",
        ]
        rows.append(cells)
    shuttles, lap = TABLE_1[day]["original"][0], TABLE_1[day]["Lap"][0]
    rows.append(
        ["Lap, published", f"≈ {laplace_trips():,.0f}", "", f"{shuttles * (1 + lap):.0f}", f"{1 + lap:.2f}"]
    )
    return markdown(["sized on", "trips", "types", "shuttles", "× D's"], rows)


def operations(results: Results) -> str:
    """Laplace's fleet under other rules of operation: what makes it larger or smaller than the published one."""
    day = results.plan.first
    rows = []
    for name in OPERATIONS:
        truth, lap = results.truth(day, operations=name), results.found.get(Job(day, "Lap", operations=name))
        if lap is not None:
            rows.append([name, *_growth(truth.shuttles, lap.shuttles, lap.trips / truth.trips)])
    own, lap_error = TABLE_1[day]["original"][0], TABLE_1[day]["Lap"][0]
    rows.append(["published", *_growth(own, own * (1 + lap_error), laplace_trips() / 4_878)])
    return markdown(["operations", "D", "Lap", "error", "growth exponent"], rows)


def _growth(own: float, more: float, factor: float) -> list[str]:
    """Both fleets, the relative error, and the power of the trips with which the fleet grows."""
    return [
        f"{own:.0f}",
        f"{more:.0f}",
        figure(more / own - 1),
        figure(math.log(more / own) / math.log(factor)),
    ]


def service(results: Results) -> str:
    """What more shuttles do for the real riders: wait and idle time by the size of the fleet, for other dispatchers."""
    day, (city, _) = results.plan.first, place()
    legs = riders(day, demand(day), 1)
    fleet = results.truth(day).fleet
    rows = []
    for name, rules in {
        AS_IS: Operations(),
        "waiting weighs 0": Operations(wait_weight=0),
        "driving weighs 10": Operations(drive_weight=10),
    }.items():
        for factor in (1.0, 1.5, 2.5, 4.4):
            larger = tuple(round(n * factor) for n in fleet)
            total = figures(simulate(city, larger, legs, rules), city)["total"]
            rows.append(
                [
                    name,
                    f"{factor:g}",
                    *(figure(total[k]) for k in ("shuttles", "wait", "idle", "occupancy", "km")),
                ]
            )
    return markdown(["dispatcher", "× D's fleet", "shuttles", "wait", "idle", "occupancy", "km"], rows)


def trees(results: Results) -> str:
    """Trips and fleets of the trees, read in several ways."""
    plan = results.plan
    day, truth = plan.first, results.truth(plan.first)
    rows = []
    for reading in (AS_IN_TEXT, Reading(budget="uniform"), Reading(prune="none"), AVERAGE, ROOT_MOST):
        made, cells = trips(reading, seeds=5), [str(reading)]
        for tree in HEIGHTS:
            name = tree if reading == AS_IN_TEXT else f"{tree}; {reading}"
            jobs = [Job(day, name, seed=s) for s in range(plan.few)]
            sized = [results.found[j] for j in jobs if j in results.found]
            cells += [f"{made[tree]:,.0f}", within(errors(sized, truth, "shuttles")) if sized else ""]
        rows.append(cells)
    rows.append(["published", *(c for tree in HEIGHTS for c in ("", figure(TABLE_1[day][tree][0])))])
    return markdown(["H read as", *(f"{t} {w}" for t in HEIGHTS for w in ("trips", "shuttles"))], rows)


def orders(results: Results) -> str:
    """How many readings have the published order, and what they have in common."""
    lap, found = int(counts_of("Lap", "1", results.plan.first, AS_IS, 0).sum()), published_order()
    below = [reading for reading, made in found if made["H3"] < lap]
    said = f"Of {len(EVERY)} readings, {len(found)} make fewer trips the taller the tree, as the published fleets say; "
    said += f"of these {len(below)} make fewer than Lap's {lap:,}. "
    every = all(reading.fan_out == AVERAGE.fan_out for reading, _ in found)
    return (
        said
        + f"All of them use Hay's formula with one average fan-out for every node: {'yes' if every else 'NO'}."
    )


def verdicts(results: Results, day: str) -> list[tuple[str, str]]:
    """What the paper's table shows, and whether ours does: yes, NO, or undecided within two standard errors."""
    truth = results.truth(day)
    found = {
        n: [abs(e) for e in errors(results.made(day, n), truth, "shuttles")] for n in results.plan.mechanisms
    }
    said = []
    if {*PROGRAMS, "H5", "H4", "H3", "Lap"} <= set(found):
        said = [
            (f"{day}: O5's error in shuttles is below {n}'s", _less(found["O5"], found[n]))
            for n in ("O4", "O3")
        ]
        worst = max(PROGRAMS, key=lambda n: mean(found[n]))
        best = min(("H5", "H4", "H3", "Lap"), key=lambda n: mean(found[n]))
        said.append(
            (
                f"{day}: every O ({worst}) is ahead of every H and of Lap ({best})",
                _less(found[worst], found[best]),
            )
        )
        ratio = mean(found["Lap"]) / mean(found["O5"])
        said.append(
            (f"{day}: Lap's error is at least 5 times O5's ({ratio:.1f})", "yes" if ratio >= 5 else "NO")
        )
    if "Lap" in found:
        wait, idle = (errors(results.made(day, "Lap"), truth, m) for m in ("wait", "idle"))
        holds = max(wait) < 0 < min(idle) if wait else False
        said.append(
            (
                f"{day}: Lap lowers the wait ({percents(wait)}) and raises idle time ({percents(idle)}) in every run",
                "yes" if holds else "NO",
            )
        )
    said += _no_worse(results, day, found)
    return said


def _no_worse(results: Results, day: str, found: dict[str, list[float]]) -> list[tuple[str, str]]:
    """Of mechanisms that the paper does not have: whether they size no worse than O5, at every ε on the first day."""
    said = []
    for name in (n for n in results.plan.mechanisms if n not in TABLE_1[day] and "O5" in found):
        said.append(
            (f"{day}: {name}'s error in shuttles is below O5's at ε = 1", _less(found[name], found["O5"]))
        )
        for e in results.plan.epsilons[1:] if day == results.plan.first else ():
            both = [_absolute(results, day, n, e) for n in (name, "O5")]
            said.append((f"{day}: {name}'s error in shuttles is below O5's at ε = {e}", _less(*both)))
    return said


def _absolute(results: Results, day: str, name: str, e: str) -> list[float]:
    made: Sequence[Outcome] = results.made(day, name, e, seeds=range(results.plan.runs), period=PERIOD)
    return [abs(x) for x in errors(made, results.truth(day), "shuttles")]


def _less(one: Sequence[float], other: Sequence[float]) -> str:
    """Whether a mean is below another: undecided where they are less than two standard errors apart.

    >>> _less([0.1, 0.12], [0.5, 0.52]), _less([0.5, 0.52], [0.1, 0.12]), _less([0.1, 0.3], [0.2, 0.4])[:9]
    ('yes (0.110 against 0.510)', 'NO (0.510 against 0.110)', 'undecided')
    """
    if not one or not other:
        return "no fleet found"
    gap = mean(other) - mean(one)
    around = math.hypot(*(0.0 if math.isnan(s) else s for s in map(standard_error, (one, other))))
    word = "undecided" if abs(gap) < 2 * around else "yes" if gap > 0 else "NO"
    return f"{word} ({figure(mean(one))} against {figure(mean(other))})"
