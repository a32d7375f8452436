"""Verdicts on tables, and the confidence they rest on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reported import Page

import cbdp
from cbdp.estimation.intervals import Interval
from cbdp.forecast.errors import expected_of
from cbdp.privacy.expected_error import DemandFacts
from cbdp.release.views import published_view
from cbdp.report import build, reliability
from cbdp.report.reliability import USES, Reliability, advice, average_count, reliability_of, reliability_text


def test_other_confidence_is_stated(rush):
    """Intervals of 95 % are called that."""
    _, release, _ = rush
    text = Page(build(replace(release, confidence=0.95))).text
    assert "95 % interval" in text
    assert "90 %" not in text


def test_verdicts_follow_their_rule(rush):
    """A table is judged by its average count: how far off it may be, half of a typical interval, as a part of it."""
    _, release, _ = rush
    counts = np.asarray(release.counts("zone"))
    mean = average_count(float(counts.sum()), len(counts))
    assert mean == pytest.approx(counts.mean(), rel=0.05)
    for wide, use in ((0.08, USES[0]), (0.2, USES[1]), (0.4, USES[2]), (1.5, USES[3])):
        half = round(wide * mean)
        made = {"zone": Interval(np.maximum(counts - half, 0), counts + half + np.maximum(half - counts, 0))}
        found = reliability_of(published_view(replace(release, intervals=made)), "zone")
        assert found.use == use
        assert found.relative == pytest.approx(half / mean)
        assert found.sure == np.mean(made["zone"].low > 0)
        assert found.sure_trips == pytest.approx(counts[made["zone"].low > 0].sum() / counts.sum())
    alone = reliability_of(published_view(replace(release, intervals={})), "zone")
    assert alone.measured
    law = next(m.noise for m in release.measurements if m.feature == "zone")
    assert (alone.scale, alone.noise) == (float(law.scale), law.half_width(0.9))
    assert alone.relative == pytest.approx(alone.noise / mean)
    empty = replace(release, index=release.index[:0], value=release.value[:0], intervals={})
    assert reliability_of(published_view(empty), "zone").use is None


def test_report_and_check_have_one_rule(rush):
    """With as many trips as are published, `check` and the report judge every table by the same count, and give it the same use."""
    city, release, _ = rush
    mechanism = cbdp.ConstraintBased(city.features(), epsilon=1)
    told = expected_of(mechanism, DemandFacts(1, release.total), 0.9)
    assert [e.feature for e in told] == list(release.features.features)
    for e in told:
        found = reliability_of(published_view(release), e.feature)
        assert found.count == e.count
        assert found.use == e.use, e.feature
        if found.quotable and not found.measured:
            assert 0.5 < found.quotable / e.good < 2


def test_noise_of_a_tree_is_not_said_to_be_that_of_a_feature():
    """A hierarchical release measures levels: only those that are features themselves have a noise scale."""
    city = cbdp.datasets.ann_arbor(hours=("08:00", "08:30"))
    published = published_view(cbdp.Hierarchical(city.features(), 1).simulate(city.trips, 1))
    assert published.noise_distribution("time") is not None
    assert published.noise_distribution("mode") is None
    assert reliability_of(published, "mode").use is None


def test_the_least_quotable_count_is_not_the_next_one_published():
    """Nothing lies between 10 and 380 here: what counts is where such an interval is within 20 %, as `cbdp check` says beforehand."""
    half, counts = np.array([14.0, 14.0, 14.0]), np.array([10.0, 380.0, 9000.0])
    assert reliability._quotable_count(half, counts) == 70
    assert reliability._quotable_count(half, np.array([69.0, 71.0, 100.0])) == 70
    assert reliability._quotable_count(np.array([20.0, 14.0, 14.0]), np.array([90.0, 95.0, 100.0])) == 91


def test_what_one_may_do_with_a_table_is_said_of_each(rush):
    """The number from which on counts may be quoted holds for every count of the table, and for no smaller number."""
    _, release, _ = rush
    published = published_view(release)
    text = Page(build(release)).text
    assert "What may I do with it?" in text
    for name in release.features.features:
        found = reliability_of(published, name)
        assert advice(found) in text
        if found.measured or not found.quotable:
            continue
        interval, counts = release.intervals[name], np.asarray(release.counts(name))
        good = (interval.high - interval.low) / 2 <= 0.2 * counts
        assert good[counts >= found.quotable].all()
        assert not good[(counts < found.quotable) & (counts > 0)].all()
    assert any(reliability_of(published, name).quotable for name in release.features.features)


def test_advice_follows_the_margin(rush):
    """Narrow intervals allow to quote anything, wide ones nothing; a table without intervals of its own is never quoted where it is noise."""
    _, release, _ = rush
    counts = np.asarray(release.counts("zone"))
    for wide, said in (
        (0.05, "Size lines and vehicles. Quote counts with"),
        (3.0, "Do not quote single counts."),
    ):
        half = np.round(wide * counts).astype(np.int64)
        made = {"zone": Interval(np.maximum(counts - half, 0), counts + half + np.maximum(half - counts, 0))}
        assert said in advice(reliability_of(published_view(replace(release, intervals=made)), "zone"))
    assert (
        advice(reliability_of(published_view(release), "singleton"))
        == "Use sums of many counts. Do not quote single counts."
    )


def test_few_large_counts_are_told_apart_from_many_good_ones():
    """An average that most counts do not reach is said to be that of large counts."""
    uneven = Reliability("zone", 600, count=540.0, margin=18.5, quotable=89, good=0.14, good_trips=0.995)
    assert uneven.use == USES[0]
    assert uneven.large_only
    assert "Quote counts of 89 or more (14 % of the counts, 99.5 % of the trips)" in advice(uneven)
    assert not replace(uneven, good=0.9).large_only
    assert not replace(uneven, margin=800.0).large_only  # sums only
    assert (
        reliability_text(uneven, 0.9)
        == "The average count, 540 trips, is within 3.4 % of the truth (with 90 % confidence)."
    )


def test_sums_are_not_praised(rush):
    """The page names the sums that were measured, and who tells the error of others."""
    _, release, _ = rush
    text = Page(build(release)).text
    assert "Sums that have a table of their own were measured as such (total, time, zone and mode)" in text
    assert "Any other sum adds up the errors of its parts" in text
    assert "cbdp ask tells its interval, mostly a narrower one" in text
