"""Numbers that no release has: counts below zero, noise that is not whole, intervals without their own count, public counts missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cbdp.audit.finding import Finding
from cbdp.audit.tampering import SHOWN, and_more, tampered
from cbdp.release.layout import TRIPS
from cbdp.release.release import Release


def attack(release: Release) -> Iterator[Finding]:
    """One finding for each kind of impossible number; where there are intervals and all are sound, a clear one."""
    wrong = [*_trips(release), *_answers(release), *_tables(release), *_intervals(release)]
    yield from wrong
    yield from _public(release)
    if not wrong and release.intervals:
        yield Finding(
            "intervals",
            "clear",
            "Every interval contains its published count",
            f"{sum(len(i.low) for i in release.intervals.values()):,} intervals of {', '.join(release.intervals)}.",
            power="An interval without its own count would have been found for certain; whether intervals are as wide as they should be was not "
            "looked at.",
        )


def _trips(release: Release) -> Iterator[Finding]:
    for row in np.flatnonzero(release.value < 1)[:1].tolist():
        words = " · ".join(map(str, release.features.universe.unrank(int(release.index[row]))))
        text = (
            f"{TRIPS} lists {words} with {release.value[row]} trips; only types with at least one are listed."
        )
        yield tampered("tables", f"{TRIPS}: the count of {words} is {release.value[row]}", text)


def _answers(release: Release) -> Iterator[Finding]:
    for m in release.measurements:
        for row in np.flatnonzero(m.values != np.rint(m.values))[:1].tolist():
            text = f"Number {row} of the noisy answers of {m.feature} is {m.values[row]}."
            found = tampered("tables", f"{m.feature}: noisy count number {row} is not a whole number", text)
            attack = "The last bits of noise from a floating-point generator can reveal the exact count beneath it."
            yield replace(found, attack=attack, cure="Draw whole noise, as cbdp does.")


def _tables(release: Release) -> Iterator[Finding]:
    for name, table in release.tables.items():
        for row in np.flatnonzero(table < 0)[:1].tolist():
            text = f"Number {row} of {name} is {table[row]}."
            yield tampered("tables", f"{name}: count number {row} is negative", text)


def _public(release: Release) -> Iterator[Finding]:
    """Counts that were public are met exactly, but where the manifest says that rounding could not."""
    for name, public in release.recipe.public.items():
        off = np.flatnonzero(release.counts(name) != np.asarray(public))
        if len(off) and not (release.violations or {}).get(name):
            row = int(off[0])
            text = f"Number {row} of {name} is {release.counts(name)[row]}; the recipe states the public count {public[row]}."
            yield tampered("public counts", f"{name}: count number {row} is not the public one", text)
        elif not len(off):
            said = f"{sum(public):,} trips in {len(public):,} counts. Nothing was spent on them, and ε does not speak of them."
            yield Finding(
                "public counts",
                "clear",
                f"The public counts of {name} are met exactly",
                said,
                power="A difference of one trip would have been found for certain.",
            )


def _intervals(release: Release) -> Iterator[Finding]:
    for name, interval in release.intervals.items():
        counts = release.counts(name)
        bad = np.flatnonzero((interval.low < 0) | (interval.low > counts) | (interval.high < counts))
        if len(bad):
            row = int(bad[0])
            keys = release.features.partition(name).keys()
            words = " · ".join(str(v[row]) for v in keys.values()) or "the whole"
            text = (
                f"{name}, {words}: the interval {interval.low[row]} to {interval.high[row]} does not contain the published "
                f"count {counts[row]}.{and_more(len(bad) + SHOWN - 1)}"
            )
            yield tampered("intervals", f"{name}: the interval of {words} is impossible", text)
