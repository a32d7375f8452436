"""What heads the page: only numbers that a measurement supports."""

from __future__ import annotations

import numpy as np
import pytest
from reported import Page, secured

import cbdp
from cbdp import Dimension, Feature, FeatureDag, Universe
from cbdp.release.views import published_view
from cbdp.report import build
from cbdp.report.reliability import supported, supporting_measurements

STOPS = Dimension([f"s{n}" for n in range(24)], zone=[f"z{n // 8}" for n in range(24)])
DAYS = ["weekday", "saturday", "sunday"]
UNIVERSE = Universe(origin=STOPS, destination=STOPS, day=DAYS, time=cbdp.periods("06:00", "18:00", "1h"))
RATE = np.random.default_rng(0).gamma(0.05, 1.0, (24, 24, 3, 12)) * np.array([1.0, 0.3, 0.1])[:, None]
TRUTH = np.random.default_rng(1).poisson(9000 * RATE / RATE.sum()).reshape(-1)
ZONES = [Feature("time", by="time"), Feature("zone", by=["origin.zone", "destination.zone", "time"])]


def head_of(features: list[Feature], **settings: object) -> tuple[cbdp.Release, str]:
    made = cbdp.ConstraintBased(FeatureDag(UNIVERSE, features), settings.pop("epsilon", 1), **settings)
    release = secured(made.simulate(TRUTH, 1))
    html = build(release)
    return release, Page(html[html.index("<header>") : html.index("</header>")]).text


def test_days_that_no_table_tells_apart_are_not_headlined() -> None:
    """Without a table by day the busiest day is left out and its chart is marked, at any ε; with one it is there."""
    assert "Most trips, by day" not in head_of(ZONES, epsilon=4)[1]
    release, head = head_of(ZONES, epsilon="1/10")
    true = TRUTH.reshape(24, 24, 3, 12).sum(axis=(0, 1, 3))
    assert "Most trips, by day" not in head
    assert "Busiest period" in head
    text = Page(build(release)).text
    assert (
        "No table was measured that tells counts by day: they are added up from single counts with much noise, and may be far off."
        in text
    )
    told, head = head_of([*ZONES, Feature("day", by="day")], epsilon="1/10")
    assert "Most trips, by dayweekday" in head
    assert "No measured table supports" not in Page(build(told)).text
    np.testing.assert_allclose(told.counts("day"), true, atol=400)


def test_what_the_noise_drowns_is_not_headlined() -> None:
    """The same tables with little ε: margins of zones and days are above a fifth of their counts; the total still stands."""
    _, head = head_of([*ZONES, Feature("day", by="day")], epsilon="1/100")
    assert "Largest zone pair" not in head
    assert "Trips" in head


def test_a_total_that_nothing_tells_is_marked() -> None:
    """At an ε that tells nothing the number of trips is called a guess."""
    release, head = head_of(ZONES, epsilon="1/10000")
    assert release.total > 0
    assert "a guess: no measurement tells how many" in head


def test_support_is_the_sum_of_measurements() -> None:
    """Of a table, its sums and the deviation of the noise in them; of trip types too, unless the estimate leans on what is expected."""
    release, _ = head_of([*ZONES, Feature("day", by="day")])
    published = published_view(release)
    found = list(supporting_measurements(published, ("origin.zone", "destination.zone")))
    assert len(found) == 1  # trip types do not count
    zone = next(m for m in release.measurements if m.feature == "zone")
    np.testing.assert_allclose(found[0].value, zone.values.reshape(9, 12).sum(axis=1))
    np.testing.assert_allclose(found[0].deviation, np.sqrt(12 * zone.variance[0]))
    assert not list(supporting_measurements(published, ("day", "origin")))
    leaves, _ = head_of(ZONES, preset="paper")
    single = next(m for m in leaves.measurements if m.feature == "singleton")
    (found_by_day,) = supporting_measurements(published_view(leaves), ("day", "origin"))
    by_day = single.values.reshape(24, 24, 3, 12).sum(axis=(1, 3)).T
    np.testing.assert_allclose(found_by_day.value, by_day.reshape(-1))
    assert supported(published, ("day",), 0, int(release.counts("day")[0]))
    assert not supported(
        published, ("day",), 0, 2 * int(release.counts("day")[0])
    )  # where no answer says it is


@pytest.mark.parametrize("mechanism", [cbdp.Laplace, cbdp.Hierarchical])
def test_other_mechanisms_have_their_supported_numbers(mechanism: type) -> None:
    """Dense counts at a large ε are told by trip types alone, or by the levels of a tree."""
    dag = FeatureDag(UNIVERSE, ZONES)
    release = secured(mechanism(dag, 8).simulate(20 * TRUTH + 50, 1))
    page = build(release)
    text = Page(page[page.index("<header>") : page.index("</header>")]).text
    assert "Busiest period" in text
    assert "a guess" not in text


def test_public_counts_head_the_page_as_such() -> None:
    """The total is public and met exactly, and the page says what that means for the promise."""
    release, head = head_of(ZONES, public={"total": int(TRUTH.sum())})
    assert f"Trips{TRUTH.sum():,}public, and met exactly" in head
    page = Page(build(release))
    assert f"Public counts: total ({TRUTH.sum():,} trips). These counts were public before." in page.text
    assert "the promise of ε is about what is published beyond them" in page.text
    assert "These counts were public already. They are met exactly." in page.text
