"""A release's place in a series (name, version, calendar, period), and the running totals that the series keeps. Public.

A span of running totals is paid for once, by a charge of its own: continual counting by a matrix mechanism (`cbdp.privacy.continual`). Each release holds the
noisy sums that end with it, so that whoever has all releases of a span can work out every total again; and what the sums so far make of its own noisy answers,
so that whoever has one folder can call `finish` again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.estimation.continual import GlsUpdate
from cbdp.privacy.continual import STRATEGIES
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution
from cbdp.privacy.unit import Sensitivity
from cbdp.release.serialization import exact_from, exact_json
from cbdp.untrusted import read_parquet

if TYPE_CHECKING:
    from cbdp.release.manifest_model import RunningJson, RunningTableJson, SeriesJson

FINAL, PRELIMINARY = "final", "preliminary"
RUNNING_TOTALS = "running totals"  # what a ledger calls the stage of charges that pay no single release


@dataclass(frozen=True)
class InSeries:
    """A release's place in its series. Days are service days, both included."""

    name: str
    version: int
    calendar: str  # daily, weekly or monthly
    period: str  # 2026-03-02, 2026-W10, 2026-03
    first: dt.date
    last: dt.date
    stage: str = FINAL
    changes: tuple[str, ...] = ()  # since the version before, in words; what has kept its name is the same
    renamed: tuple[tuple[str, str], ...] = ()  # stops with another name since the version before: old, new
    days: str = ""  # how rows were given a service day; "" in releases of earlier versions of the program

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InputError(f"series: the last day, {self.last}, is before the first, {self.first}")

    def json(self) -> SeriesJson:
        stated = {
            "name": self.name,
            "version": self.version,
            "calendar": self.calendar,
            "period": self.period,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "stage": self.stage,
        }
        further = {"changes": list(self.changes), "renamed": dict(self.renamed), "days": self.days}
        return cast("SeriesJson", {**stated, **{name: value for name, value in further.items() if value}})


def series_from(stated: SeriesJson | None) -> InSeries | None:
    """What a manifest states; None where the release is of no series."""
    if stated is None:
        return None
    try:
        first, last = (dt.date.fromisoformat(day) for day in (stated["first"], stated["last"]))
    except ValueError:
        raise InputError(f"series: {stated['first']!r} to {stated['last']!r} are not days") from None
    return InSeries(
        stated["name"],
        stated["version"],
        stated["calendar"],
        stated["period"],
        first,
        last,
        stated["stage"],
        tuple(stated.get("changes", ())),
        tuple(stated.get("renamed", {}).items()),
        stated.get("days", ""),
    )


# Running totals


REST_COLUMN, BEFORE_COLUMN, AFTER_COLUMN = "running rest", "published before", "running total"  # columns
RUNNING_TOTALS_MEANING = (
    "Running totals of these tables since the first day of a span. The price is for the whole span, for what one unit does in one period of "
    "it; 'privacy' states it in every release of the span, and it is charged once. Each published table is estimated from 'weight' times its own noisy "
    "count plus 'running rest', which is the total that all noisy answers of the span tell, less what was published before."
)


def running_total_part(feature: str) -> str:
    """What a guarantee calls the cost of a table's running totals."""
    return f"running totals of {feature}, all of their span"


def sensitivity_of_span(stated: RunningJson, one: Sensitivity) -> Sensitivity:
    """The sensitivity of all sums of a span, as a manifest states it, for that of one period's table."""
    return STRATEGIES[stated["strategy"]](stated["periods"]).change(one)


@dataclass(frozen=True, eq=False)
class RunningTable:
    """Of one table: the noisy sums that end in this period (a row for each), and what was published in the span before it."""

    answers: Ints = field(repr=False)
    before: Ints = field(repr=False)
    steered: GlsUpdate = field(repr=False)
    law: NoiseDistribution
    deviation: float  # of the noise of the total after this period

    def columns(self) -> dict[str, Ints | Floats]:
        """The columns of its file, beside those that name the counts."""
        sums = {f"sum {n}": row for n, row in enumerate(self.answers, 1)}
        return {**sums, REST_COLUMN: self.steered.rest, BEFORE_COLUMN: self.before}

    def json(self, feature: str, file: str) -> RunningTableJson:
        stated = {
            "feature": feature,
            "file": file,
            "law": self.law.name,
            "scale": exact_json(self.law.scale),
            self.law.currency: exact_json(self.steered.amount),  # for the whole span
            "sums": len(self.answers),
            "weight": self.steered.weight,
            "variance": self.steered.variance,
            "deviation": self.deviation,
        }
        return cast("RunningTableJson", stated)


@dataclass(frozen=True, eq=False)
class RunningPart:
    """Which release of which span it is, and its tables."""

    first: dt.date  # of the span
    number: int  # from 1 on
    periods: int  # that the span may have
    strategy: str
    request: str  # by which the ledger knows the span's charge
    tables: Mapping[str, RunningTable]

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES or not 1 <= self.number <= self.periods:
            raise InputError(f"running totals: {self.number} of {self.periods} periods by {self.strategy!r}")

    @property
    def steered(self) -> dict[str, GlsUpdate]:
        """What `finish` needs of it."""
        return {name: table.steered for name, table in self.tables.items()}

    def json(self, files: Mapping[str, str]) -> RunningJson:
        return {
            "meaning": RUNNING_TOTALS_MEANING,
            "first": self.first.isoformat(),
            "number": self.number,
            "periods": self.periods,
            "strategy": self.strategy,
            "request": self.request,
            "tables": [table.json(name, files[name]) for name, table in self.tables.items()],
        }


def read_running_totals(place: Path, stated: RunningJson | None) -> RunningPart | None:
    """What a folder holds of running totals; None where its series keeps none."""
    if stated is None:
        return None
    tables = {t["feature"]: _read_table(place, t) for t in stated["tables"]}
    first = dt.date.fromisoformat(stated["first"])
    return RunningPart(
        first, stated["number"], stated["periods"], stated["strategy"], stated["request"], tables
    )


def _read_table(place: Path, stated: RunningTableJson) -> RunningTable:
    rows = read_parquet(place / stated["file"])
    law = NOISE_DISTRIBUTIONS.installed(stated["law"])(exact_from(stated["scale"]))
    sums = [_column(rows, f"sum {n}") for n in range(1, stated["sums"] + 1)]
    answers = np.array(sums, dtype=np.int64).reshape(stated["sums"], rows.num_rows)
    rest, amount = (
        _column(rows, REST_COLUMN).astype(float),
        exact_from(stated["rho"] if law.currency == "rho" else stated["epsilon"]),
    )
    steered = GlsUpdate(stated["weight"], rest, stated["variance"], amount)
    before = _column(rows, BEFORE_COLUMN).astype(np.int64)
    return RunningTable(answers, before, steered, law, stated["deviation"])


def _column(rows: pa.Table, name: str) -> Ints | Floats:
    return np.asarray(rows[name].combine_chunks().to_numpy(zero_copy_only=False))
