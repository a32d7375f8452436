"""The same plan with other periods and zones, as a configuration could say it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_city import plan_of

from cbdp.app.plan import config_of_variant, fewer_zones, other_periods, variants
from cbdp.config.sections import ZonesSection

NAMED = (
    'time = { start = "06:00", end = "10:00", every = "1h" }',
    'time = [{ name = "early", start = "06:00", end = "08:00" }, { name = "late", start = "08:00", end = "10:00" }]',
)
FOUR = "id,lat,lon,zone\n" + "".join(f"S{n},{42 + n / 100},-83,z{n % 4}\n" for n in range(6))


def test_periods_fill_the_hours(city: Path) -> None:
    """One finer, some coarser up to the whole span; periods with names of their own have no other length."""
    assert other_periods(plan_of(city)) == ["30min", "120min", "240min"]
    assert other_periods(plan_of(city, ('every = "1h"', 'every = "80min"'))) == ["60min", "120min", "240min"]
    assert other_periods(plan_of(city, NAMED)) == []


def test_fewer_zones_are_drawn_anew(city: Path) -> None:
    """Three quarters, a half and a quarter of them, but two at least; none where no table goes by zones."""
    assert fewer_zones(plan_of(city)) == []
    (city / "stops.csv").write_text(FOUR)
    assert fewer_zones(plan_of(city)) == [3, 2]
    assert fewer_zones(plan_of(city, ('preset = "odmts"\n', ""))) == []


def test_a_variant_is_what_the_configuration_would_give(city: Path) -> None:
    """The same features and the same shares as if it were written so."""
    (city / "stops.csv").write_text(FOUR)
    made = {(v.every, v.clusters): v for v in variants(plan_of(city))}
    assert set(made) == {(e, z) for e in (None, "30min", "120min", "240min") for z in (None, 3, 2)}
    written = plan_of(city, ('every = "1h"', 'every = "120min"'), ('column = "zone"', "clusters = 2"))
    found = made["120min", 2]
    assert found.features.sizes == written.features.sizes
    assert [a.share for a in found.mechanism.answers()] == [a.share for a in written.mechanism.answers()]


def test_fewer_zones_are_made_as_the_configuration_makes_them(city: Path) -> None:
    """Balanced zones stay balanced."""
    (city / "stops.csv").write_text(FOUR)
    plan = plan_of(city, ('column = "zone"', "balanced = 4"))
    assert config_of_variant(plan.config, None, 2).universe.zones == ZonesSection(balanced=2)
    assert config_of_variant(plan_of(city).config, None, 2).universe.zones == ZonesSection(clusters=2)


@pytest.mark.parametrize("public", ['"zones.csv"', "{ total = 50 }"])
def test_what_goes_by_the_configured_zones_is_left_out(city: Path, public: str) -> None:
    """Public counts by zone fit no other zones; a public total fits all."""
    (city / "stops.csv").write_text(FOUR)
    rows = [f"z{a},z{b},7\n" for a in range(4) for b in range(4)]
    (city / "zones.csv").write_text("origin.zone,destination.zone,count\n" + "".join(rows))
    table = ("[privacy]", '[[feature]]\nname = "pairs"\nby = ["origin.zone", "destination.zone"]\n[privacy]')
    plan = plan_of(city, table, ("cap = 2.0", f"cap = 2.0\npublic = {public}"))
    made = {v.clusters for v in variants(plan)}
    assert made == ({None} if "zones" in public else {None, 3, 2})
