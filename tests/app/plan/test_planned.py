"""A plan holds what a configuration describes, and no row of the trips is read for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_city import plan_of

from cbdp import forecast
from cbdp.counting import count
from cbdp.errors import InputError
from cbdp.privacy.unit import Trip


def test_a_plan_holds_what_a_release_needs(city: Path) -> None:
    """Universe, features, mechanism, account and output are those the configuration describes."""
    plan = plan_of(city)
    assert plan.features.sizes == {"total": 1, "time": 4, "zone": 16, "mode": 12, "singleton": 144}
    assert plan.mechanism.claim().cost.epsilon == 1
    assert plan.unit == Trip()
    assert plan.dataset == "city"
    assert plan.output == city / "release"
    assert (plan.account.exists, plan.account.cap.epsilon, plan.account.after.epsilon) == (False, 2, 1)
    counted = count(plan.trips, plan.universe, columns=plan.columns, unit=plan.unit, clock=plan.clock)
    assert counted.value.sum() == 50


def test_no_row_is_read(city: Path) -> None:
    """Trips whose rows cannot be read at all are planned and explained as if they could."""
    wanted = forecast.explain(plan_of(city)).text
    whole = (city / "trips.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    (city / "trips.parquet").write_bytes(b"PAR1" + b"\xff" * (len(whole) - footer - 4) + whole[-footer:])
    assert forecast.explain(plan_of(city)).text == wanted
    with pytest.raises(InputError):
        count(str(city / "trips.parquet"), plan_of(city).universe, columns=plan_of(city).columns)
    (city / "trips.csv").write_text('from_stop,to_stop,left_at\n"S0,S1\nS2,,,,,\n')
    assert (
        forecast.explain(plan_of(city, ("trips.parquet", "trips.csv"))).noise
        == forecast.explain(plan_of(city)).noise
    )
