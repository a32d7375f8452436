"""What a comparison says in sentences: what it shows, and in what the two releases differ beside their trips."""

from __future__ import annotations

from collections.abc import Sequence

from cbdp.release.about import Dates
from cbdp.release.change.many import METHOD
from cbdp.release.counted import counted
from cbdp.release.release import Release
from cbdp.release.when import dates_of, period_of
from cbdp.release.words import left_out


def headline(rows: int, alone: int, sure: int, untold: int, confidence: float) -> tuple[str, ...]:
    """What stands out, and what chance alone would do."""
    percent = f"{100 * confidence:g} %"
    judged = rows - untold
    said = []
    if judged == 1:
        found = "more than noise can explain" if sure else "within noise"
        said.append(f"The change is {found} (at {percent} confidence).")
    elif judged:
        by_chance = (1 - confidence) * judged
        said.append(
            f"{alone:,} of {judged:,} rows changed by more than noise alone explains (at {percent} confidence, each row for itself). "
            f"If nothing had changed, up to about {by_chance:,.0f} of {judged:,} would look so."
        )
        said.append(_corrected(sure, confidence))
    if untold:
        said.append(
            f"{untold:,} of {rows:,} rows have no interval and no verdict: no measured table adds up to them, so nothing tells how far they may be from the truth."
        )
    return tuple(said)


def _corrected(sure: int, confidence: float) -> str:
    said = f"After the correction for many rows ({METHOD}), "
    if not sure:
        return f"{said}none stands out."
    risk = f"{100 * (1 - confidence):.3g} %"
    return f"{said}{sure:,} {'stands' if sure == 1 else 'stand'} out: at most {risk} of such rows are expected to be chance."


def name_of(releases: Sequence[Release], otherwise: str) -> str:
    """The period, or the title, of a side."""
    spoken = [_spoken(r) for r in releases]
    if not all(spoken):
        return otherwise
    if len(spoken) == 1:
        return spoken[0]
    parts = [r.series for r in releases if r.series is not None]
    if len(parts) == len(spoken):
        return f"{Dates(min(p.first for p in parts), max(p.last for p in parts))} ({len(spoken)} releases)"
    return f"{spoken[0]} to {spoken[-1]} ({len(spoken)} releases)"


def _spoken(release: Release) -> str:
    if release.series is not None:
        return str(Dates(release.series.first, release.series.last))
    title = release.about.title if release.about is not None else None
    return period_of(release) or title or ""


def differences_between(first: Sequence[Release], second: Sequence[Release]) -> list[str]:
    """In what the releases differ that changes how their numbers compare: allowed, and said."""
    made = []
    for what, read in (("privacy budget", _cost), ("unit of privacy", _unit), ("mechanism", _mechanism)):
        one, two = (sorted({read(r) for r in side}) for side in (first, second))
        if one != two:
            made.append(
                f"The {what} differs: {' and '.join(one)} in the first, {' and '.join(two)} in the second."
            )
    noun = counted(first[0].features.universe)
    bounds = dict.fromkeys(left_out(r.claim.unit, noun) for r in (*first, *second))
    made += [f"{sentence} Changes in the others are not seen." for sentence in bounds if sentence]
    made += _spans(first, second)
    if not all(r.secure for r in (*first, *second)):
        made.append("At least one release is a simulation, which protects nobody.")
    return made


def _cost(release: Release) -> str:
    cost = release.claim.cost
    if getattr(cost, "currency", "epsilon") == "rho":
        return f"ρ = {float(cost.rho):.4g}"
    delta = f", δ = {float(cost.delta):.2g}" if cost.delta else ""
    return f"ε = {float(cost.epsilon):.4g}{delta}"


def _unit(release: Release) -> str:
    return str(release.claim.unit)


def _mechanism(release: Release) -> str:
    estimator = release.recipe.estimator
    return release.mechanism if estimator is None else f"{release.mechanism} ({estimator})"


def _spans(first: Sequence[Release], second: Sequence[Release]) -> list[str]:
    days = [[_days(r) for r in side] for side in (first, second)]
    known = [sum(n for n in side if n) for side in days if all(side)]
    if len(known) < 2 or known[0] == known[1]:
        return []
    return [f"The first covers {known[0]:,} days and the second {known[1]:,}: counts are not per day."]


def _days(release: Release) -> int:
    """How many days a release covers, as far as it says; 0: it does not."""
    if release.series is not None:
        return (release.series.last - release.series.first).days + 1
    stated = None if release.about is None else release.about.period
    dates = stated if isinstance(stated, Dates) else dates_of(release.features.universe)
    return 0 if dates is None else (dates.last - dates.first).days + 1
