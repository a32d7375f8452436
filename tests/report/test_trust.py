"""Verdicts on tables, and the confidence they rest on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reported import Page

import cbdp
from cbdp.estimate.intervals import Interval
from cbdp.release.published import publish
from cbdp.report import build
from cbdp.report.trust import CARE, EMPTY, NOISE, TRUST, advice, judge


def test_other_confidence_is_stated(rush):
    """Intervals of 95 % are called that."""
    _, release, _ = rush
    text = Page(build(replace(release, confidence=0.95))).text
    assert "95 % interval" in text
    assert "90 %" not in text


def test_verdicts_follow_their_rule(rush):
    """A typical half width of at most 20 % of the count is trusted, up to 100 % used with care, and beyond it noise."""
    _, release, _ = rush
    counts = release.counts("zone")
    for wide, verdict in ((0.1, TRUST), (0.5, CARE), (1.5, NOISE)):
        half = np.round(wide * counts).astype(np.int64)
        made = {"zone": Interval(np.maximum(counts - half, 0), counts + half + np.maximum(half - counts, 0))}
        found = judge(publish(replace(release, intervals=made)), "zone")
        assert found.verdict == verdict
        assert found.sure == np.mean(made["zone"].low > 0)
        assert found.sure_trips == pytest.approx(counts[made["zone"].low > 0].sum() / counts.sum())
    alone = judge(publish(replace(release, intervals={})), "zone")
    assert alone.measured
    law = next(m.noise for m in release.measurements if m.feature == "zone")
    assert (alone.scale, alone.noise) == (float(law.scale), law.half_width(0.9))
    assert alone.relative == pytest.approx(np.median(alone.noise / counts[counts > 0]))
    empty = replace(release, index=release.index[:0], value=release.value[:0], intervals={})
    assert judge(publish(empty), "zone").verdict == EMPTY


def test_noise_of_a_tree_is_not_said_to_be_that_of_a_feature():
    """A hierarchical release measures levels: only those that are features themselves have a noise scale."""
    city = cbdp.datasets.ann_arbor(hours=("08:00", "08:30"))
    published = publish(cbdp.Hierarchical(city.features(), 1).simulate(city.trips, 1))
    assert published.law("time") is not None
    assert published.law("mode") is None
    assert judge(published, "mode").verdict == EMPTY


def test_what_one_may_do_with_a_table_is_said_of_each(rush):
    """The number from which on counts may be quoted holds for every count of the table, and for no smaller number."""
    _, release, _ = rush
    published = publish(release)
    text = Page(build(release)).text
    assert "What may I do with it?" in text
    for name in release.features.features:
        found = judge(published, name)
        assert advice(found) in text
        if found.measured or not found.quotable:
            continue
        interval, counts = release.intervals[name], np.asarray(release.counts(name))
        good = (interval.high - interval.low) / 2 <= 0.2 * counts
        assert good[counts >= found.quotable].all()
        assert not good[(counts < found.quotable) & (counts > 0)].all()
    assert any(judge(published, name).quotable for name in release.features.features)


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
        assert said in advice(judge(publish(replace(release, intervals=made)), "zone"))
    assert (
        advice(judge(publish(release), "singleton"))
        == "Add up many counts first. Do not quote single counts."
    )
