"""What must hold after all kills: every day once, charges for all noise, files as the ledger notes them, totals that add up."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import cbdp
from benchmarks.series_kills.attempts import NOISE, SUMS, is_release
from benchmarks.series_kills.city import FIRST, TABLES
from cbdp.forecast.running import REDRAWN_SUMS
from cbdp.ledger import Charge, Ledger
from cbdp.release.series import RUNNING_TOTALS

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Killed:
    """What was found after all attempts."""

    kills: int  # processes that died
    days: int
    reserved: int  # charges for releases
    draws: int
    released: int
    phases: Counter[str]  # where the kills struck
    spans: int = 0  # charges for spans of running totals
    again: int = 0  # charges for sums that may be drawn again
    sums: int = 0  # draws of sums, of all tables of a day together


def check(folder: Path, days: int, phases: Counter[str], *, running: int = 0) -> Killed:
    """Every day once; the ledger equal to the files; no noise without a charge; nothing half written."""
    names = [(FIRST + dt.timedelta(days=n)).isoformat() for n in range(days)]
    found = sorted(p.name for p in (folder / "releases").iterdir())
    _must(found == names, f"the folders are {found}")
    with Ledger.view(folder / "ledger.sqlite") as ledger:
        ledger.verify()
        charges = ledger.charges()
        periods = {c.id: c.part.period for c in charges if c.part and is_release(c)}
        notes = [e for e in ledger.entries() if e.event == "released" and e.fields["charge"] in periods]
        released = {periods[e.fields["charge"]]: e for e in notes}
        _must(
            sorted(released) == names and len(notes) == days,
            f"the ledger notes {len(notes)} releases of {len(released)} days",
        )
        _must(
            ledger.spent.value == sum((c.amount.value for c in charges), Fraction(0)),
            "what is spent is not the sum of all charges",
        )
        for name in names:
            _check_release(folder / "releases" / name, ledger, released[name].fields["sha256"])
    draws = (folder / NOISE).read_text().count("noise")
    _must(draws <= len(periods), f"noise was drawn {draws} times for {len(periods)} charges")
    sums = _check_sums(folder, names, charges, running) if running else {}
    return Killed(sum(phases.values()), days, len(periods), draws, len(notes), phases, **sums)


def _check_release(place: Path, ledger: Ledger, sha256: str) -> None:
    manifest = (place / "manifest.json").read_bytes()
    _must(
        hashlib.sha256(manifest).hexdigest() == sha256,
        f"{place.name}: its manifest is not the one that was noted",
    )
    release = cbdp.load(place)  # checks the hashes of all files
    _must(
        ledger.contains(str(release.manifest["ledger"]["head"])),
        f"{place.name}: its charge is not in the ledger",
    )
    total = int(release.counts("total")[0])
    _must(
        total == int(release.counts("zone").sum()) == int(release.value.sum()),
        f"{place.name}: totals disagree",
    )


def _check_sums(
    folder: Path, names: Sequence[str], charges: Sequence[Charge], periods: int
) -> dict[str, int]:
    """Spans are charged once each; sums are drawn once, and once more for each charge that says so; totals add up."""
    spans = [c for c in charges if c.what == RUNNING_TOTALS]
    starts = [FIRST + dt.timedelta(days=n) for n in range(0, len(names), periods)]
    _must([c.covers and c.covers.first for c in spans] == starts, f"spans are charged from {spans}")
    again = Counter(c.request for c in charges if c.what == REDRAWN_SUMS)
    drawn = Counter((folder / SUMS).read_text().split())  # by how many days they hold
    paid: Counter[str] = Counter()
    for n in range(len(names)):
        number = n % periods + 1
        paid[str(number)] += len(TABLES) * (1 + again[f"{spans[n // periods].request}:{number}"])
    for held, many in drawn.items():
        _must(
            many <= paid[held],
            f"sums of {held} days were drawn {many} times, and paid {paid[held]} times",
        )
    _must(set(drawn) == set(paid), f"sums of {sorted(paid)} days are paid for, of {sorted(drawn)} drawn")
    for table in TABLES:
        _check_totals(folder, names, periods, table)
    return {"spans": len(spans), "again": again.total(), "sums": drawn.total() // len(TABLES)}


def _check_totals(folder: Path, names: Sequence[str], periods: int, table: str) -> None:
    """As whole numbers: days add up to what stands in the files, and weeks and months are differences of that."""
    every = np.array([cbdp.load(folder / "releases" / name).counts(table) for name in names])
    stood = {}
    for n, name in enumerate(names):
        held = pq.read_table(folder / "releases" / name / "running" / f"{table}.parquet")
        stood[n] = np.asarray(held["running total"].to_numpy())
        _must(stood[n].dtype.kind == "i", f"{name}: totals of {table} are no whole numbers")
        before = every[n - n % periods : n].sum(axis=0)
        _must(np.array_equal(stood[n], before + every[n]), f"{name}: days of {table} do not add up")
        _must(np.array_equal(held["published before"].to_numpy(), before), f"{name}: {table} forgot a day")

    def since_start(days: int) -> Ints:
        """From the totals alone: of whole spans, and of the one that is open."""
        ends = [*range(periods, days, periods), days]
        return sum((stood[end - 1] for end in ends if end), np.zeros_like(every[0]))

    dates = [dt.date.fromisoformat(name) for name in names]
    for of in (lambda d: d.isocalendar()[:2], lambda d: (d.year, d.month)):
        cuts = [0, *(n for n in range(1, len(names)) if of(dates[n]) != of(dates[n - 1])), len(names)]
        for begin, end in pairwise(cuts):
            whole = since_start(end) - since_start(begin)
            _must(
                np.array_equal(whole, every[begin:end].sum(axis=0)),
                f"{names[begin]}: {table} is not its days",
            )


def _must(holds: object, what: str) -> None:
    if not holds:
        raise RuntimeError(what)
