"""The curator's own report: the release compared with the truth. It reveals private data, and nothing writes it unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cbdp.arrays import Ints
from cbdp.counting.counts import Counts
from cbdp.errors import InputError
from cbdp.estimation.intervals import Interval
from cbdp.features import SINGLETON
from cbdp.numbers import confidence_text, number_text, percent, signed
from cbdp.release.release import Release
from cbdp.release.views import Published, published_view
from cbdp.report.page import scatter_diagram
from cbdp.report.reliability import published_features
from cbdp.report.rendering import Table, render

MAX_LISTED_MISSES = 25  # counts of each table, those with the largest errors


@dataclass(frozen=True, eq=False)
class Comparison:
    """A feature's published and true counts; of `singleton` only the types that have either."""

    feature: str
    size: int
    published: Ints
    true: Ints
    index: Ints  # the element each stands for
    covered: float | None  # share of the intervals that contain the truth

    @property
    def error(self) -> Ints:
        return self.published - self.true

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.square(self.error, dtype=float).sum() / self.size))


def build_internal(release: Release, truth: Counts) -> str:
    """Errors of every table against the truth, coverage of the intervals, and the largest errors, as HTML.

    For the curator's eyes only: the page shows exact counts. `truth` are the counts that the release was made from.
    """
    same = {n: d.values for n, d in truth.universe.dimensions.items()} == {
        n: d.values for n, d in release.features.universe.dimensions.items()
    }
    if not same:
        raise InputError(
            "the truth counts other trip types than the release: count with the release's universe"
        )
    published = published_view(release)
    comparisons = [compare(published, truth, name) for name in published_features(published)]
    several = [c for c in comparisons if c.size > 1]
    return render(
        "app/internal.html.jinja",
        internal=True,
        true_total=int(truth.value.sum()),
        published_total=release.total,
        confidence=confidence_text(published.confidence),
        errors=_errors(comparisons, published),
        misses={c.feature: _misses(c, published) for c in several},
        scatters={c.feature: scatter_diagram(c.published, c.true) for c in several},
    )


def compare(published: Published, truth: Counts, name: str) -> Comparison:
    release, interval = published.release, published.intervals.get(name)
    size = published.dag.size(name)
    if name == SINGLETON and interval is None and name not in release.tables:
        index = np.union1d(release.index, truth.index)
        counts, exact = (_at(index, c.index, c.value) for c in (release, truth))
    else:
        index, counts, exact = np.arange(size), release.counts(name), truth.of(published.dag, name)
    return Comparison(
        name, size, counts, exact, index, None if interval is None else _covered(interval, exact)
    )


def _at(index: Ints, where: Ints, value: Ints) -> Ints:
    dense = np.zeros(len(index), dtype=np.int64)
    dense[np.searchsorted(index, where)] = value
    return dense


def _covered(interval: Interval, exact: Ints) -> float:
    return float(np.mean((interval.low <= exact) & (exact <= interval.high)))


def _errors(comparisons: Sequence[Comparison], published: Published) -> Table:
    head = ["Table", "Counts", "Root mean square error", "Mean error", "Mean absolute error", "Largest error", "Relative to the mean count",
            f"Inside {confidence_text(published.confidence)} intervals"]  # fmt: skip
    rows = []
    for c in comparisons:
        mean = c.true.sum() / c.size
        rows.append([
            c.feature, f"{c.size:,}", _small(c.rms), signed(float(c.error.sum() / c.size), 3), _small(np.abs(c.error).sum() / c.size),
            f"{int(np.abs(c.error).max(initial=0)):,}", percent(c.rms / mean) if mean else "–",
            "–" if c.covered is None else percent(c.covered),
        ])  # fmt: skip
    return Table(head, rows)


def _small(value: float) -> str:
    return number_text(value) if value >= 100 else f"{value:.3g}"


def _misses(c: Comparison, published: Published) -> Table | None:
    """The counts with the largest errors; None where every count is exact."""
    worst = np.lexsort((c.index, -np.abs(c.error)))[:MAX_LISTED_MISSES]
    worst = worst[c.error[worst] != 0]
    if not len(worst):
        return None
    names = _names(published, c.feature, c.index[worst])
    interval = published.intervals.get(c.feature)
    rows = []
    for name, place in zip(names, worst.tolist(), strict=True):
        row = [name, f"{c.published[place]:,}", f"{c.true[place]:,}", signed(int(c.error[place]))]
        if interval is not None:
            low, high = int(interval.low[place]), int(interval.high[place])
            row.append(f"{low:,}–{high:,}" + ("" if low <= c.true[place] <= high else " (missed)"))
        rows.append(row)
    return Table(
        ["Count", "Published", "True", "Error", *(["Interval"] if interval is not None else [])], rows
    )


def _names(published: Published, feature: str, elements: Ints) -> list[str]:
    """The elements' labels, joined."""
    universe = published.dag.universe
    if feature == SINGLETON:
        codes = universe.unrank_codes(elements)
        columns = [
            [str(d.values[i]) for i in code.tolist()]
            for d, code in zip(universe.dimensions.values(), codes, strict=True)
        ]
    else:
        partition = published.dag.partition(feature)
        pairs = zip(partition.attributes, partition.label_codes(), strict=True)
        columns = [[str(a.labels[i]) for i in code[elements].tolist()] for a, code in pairs]
    return [" · ".join(row) for row in zip(*columns, strict=True)]
