"""The request of a plan: one hash for what is the same release, another for what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyarrow import parquet
from small_city import plan_of, trip_table


def test_identical_requests_have_one_hash(city: Path) -> None:
    """Spelling, place, confidence and exports do not matter: to change them must not cost ε again."""
    request = plan_of(city).request
    every = 'measured = ["singleton", "mode", "zone", "time", "total"]'
    parts = [f'{a.feature} = "{a.share}"' for a in plan_of(city).mechanism.answers()]
    shares = f"budget = {{ {', '.join(parts)} }}"
    for changes in (
        [("epsilon = 1.0", 'epsilon = "2/2"')],
        [("cap = 2.0", f"cap = 2.0\n{shares}")],
        [("cap = 2.0", 'cap = 2.0\nbudget = "balanced"')],
        [('"release"', '"elsewhere"\nconfidence = 0.5\nexport = ["csv"]')],
        [("expected_trips = 60000", "")],
        [('id = "city"', 'id = "city"\nriders = "all of them"')],
        [("[output]", '[about]\ntitle = "Trips"\n[output]')],
        [('name = "constraint-based"', f'preset = "best"\nestimator = "posterior"\n{every}')],
    ):
        assert plan_of(city, *changes).request == request
    paper = plan_of(city, ('name = "constraint-based"', 'preset = "paper"')).request
    spelt = 'weights = "size"\nestimator = "projection"\n' + every
    assert (
        plan_of(
            city, ("cap = 2.0", 'cap = 2.0\nbudget = "uniform"'), ('name = "constraint-based"', spelt)
        ).request
        == paper
    )
    assert paper != request


@pytest.mark.slow
def test_requests_that_differ_have_other_hashes(city: Path) -> None:
    """Whatever changes what is released changes the hash."""
    for name, last in (("even", 1), ("uneven", 2)):
        rows = [f"S{n},{last if n == 5 else 1}" for n in range(6)]
        (city / f"{name}.csv").write_text("\n".join(["stop,weight", *rows]) + "\n")
    hashes = {plan_of(city).request}
    changes: list[tuple[str, str]] = [
        ("epsilon = 1.0", "epsilon = 1.5"),
        ('id = "city"', 'id = "town"'),
        ('every = "1h"', 'every = "2h"'),
        ("[2, 4]", "[2, 3]"),
        ("zones = {", "origin_is_destination = false\nzones = {"),
        ('{ column = "zone" }', "{ clusters = 2 }"),
        ("[privacy]", '[[feature]]\nname = "o"\nby = "origin"\n[privacy]'),
        ("cap = 2.0", 'cap = 2.0\nbudget = "geometric"'),
        ("cap = 2.0", 'cap = 2.0\nbudget = "leaves"'),
        ("cap = 2.0", "cap = 2.0\ntarget = { zone = 1, singleton = 1 }"),
        ("cap = 2.0", "cap = 2.0\ntarget = { zone = 9, singleton = 1 }"),
        ('"constraint-based"', '"constraint-based"\npreset = "paper"'),
        ('"constraint-based"', '"constraint-based"\nestimator = "projection"'),
        ('"constraint-based"', '"constraint-based"\nprior = "even.csv"'),
        ('"constraint-based"', '"constraint-based"\nprior = "uneven.csv"'),
        ("cap = 2.0", 'cap = 2.0\nunit = { trip = "replace" }'),
        ("cap = 2.0", 'cap = 2.0\nunit = { person = "card", max_trips = 1 }'),
        ('"constraint-based"', '"constraint-based"\nweights = "uniform"'),
        ('"constraint-based"', '"hierarchical"'),
        ("expected_trips = 60000", 'timezone = "America/Detroit"'),
        ('origin = "from_stop", destination = "to_stop"', 'origin = "to_stop", destination = "from_stop"'),
    ]
    for change in changes:
        hashes.add(plan_of(city, change).request)
    assert len(hashes) == 1 + len(changes)


def test_other_trips_under_the_same_name_are_another_request(city: Path) -> None:
    """February's file in January's place, or the same name in another folder; what is asked for is the same."""
    january = plan_of(city)
    (city / "b").mkdir()
    parquet.write_table(trip_table(), city / "b" / "trips.parquet")
    elsewhere = plan_of(city, ('"trips.parquet"', '"b/trips.parquet"'))
    parquet.write_table(trip_table(51), city / "trips.parquet")
    february = plan_of(city)
    assert len({january.request, elsewhere.request, february.request}) == 3
    assert january.asked == elsewhere.asked == february.asked
    os.utime(city / "trips.parquet", ns=(0, 0))
    assert plan_of(city).request != february.request


def test_one_file_has_one_request_by_whatever_name(city: Path) -> None:
    """A link, a detour and a pattern lead to the same trips."""
    request = plan_of(city).request
    (city / "link.parquet").symlink_to(city / "trips.parquet")
    (city / "b").mkdir()
    for name in ("link.parquet", "b/../trips.parquet", "trips.par*"):
        assert plan_of(city, ('"trips.parquet"', f'"{name}"')).request == request


def test_a_setting_that_this_module_does_not_know_counts(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever [data] may come to say about reading rows makes another request, unless it is not stated."""
    from dataclasses import replace

    from cbdp.forecast import account

    plan = plan_of(city)
    monkeypatch.setattr(
        account, "DATA_WITHOUT_EFFECT", tuple(n for n in account.DATA_WITHOUT_EFFECT if n != "expected_trips")
    )
    data = [replace(plan.config.data, expected_trips=n) for n in (None, 1, 2)]
    found = [
        account.public_request_of(replace(plan.config, data=d), plan.columns, plan.clock, plan.mechanism)
        for d in data
    ]
    assert len(set(found)) == 3
    assert found[0] == plan.asked
