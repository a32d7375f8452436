"""What test modules share."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

pytest.register_assert_rewrite("browsing", "released", "exported")
pytest_plugins = ("repeatable",)

# The same examples on every machine, however busy it is; `--hypothesis-profile=search` looks for new ones.
_UNHURRIED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("search", **_UNHURRIED)
hypothesis.settings.register_profile("repeatable", **_UNHURRIED, derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")

HERE = Path(__file__).parent
SLOW_FIXTURES = {"browser", "site"}  # whoever asks for one of these is slow
SLOW = [  # whole folders and modules that are slow: servers and clusters, benchmarks, attacks, many draws or releases
    HERE / name
    for name in (
        "app/audit",
        "app/plan/test_service_days.py",
        "app/presets",
        "app/publish",
        "app/series",
        "app/test_choosing.py",
        "app/test_epsilon.py",
        "app/test_fleet_cities.py",
        "app/test_guards.py",
        "app/test_inspect.py",
        "app/test_inspect_taps.py",
        "app/test_inspect_zone.py",
        "app/test_strangers.py",
        "audit",
        "benchmarks",
        "counting/engines",
        "counting/test_attacks.py",
        "counting/test_bounding.py",
        "counting/test_bounding_drawn.py",
        "counting/test_bounding_periods.py",
        "counting/test_persons_equal.py",
        "counting/test_preparing.py",
        "counting/test_proof_bounding.py",
        "counting/test_zones.py",
        "docs/test_how_to.py",
        "docs/test_tutorials.py",
        "estimation/test_benchmarking.py",
        "estimation/test_likely.py",
        "golden",
        "ledger/test_crashes.py",
        "measuring/test_choosing.py",
        "mechanisms/test_public.py",
        "mechanisms/test_recipes.py",
        "privacy/test_bought.py",
        "privacy/test_optimal.py",
        "release/change",
        "release/documents/test_package.py",
        "report/plan",
        "report/test_support.py",
        "transit",
    )
]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Any:
    """What is loaded by the end stays: the collector of garbage need not go through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure() -> None:
    """What was left alone may go in the end."""
    gc.unfreeze()


FIRST = HERE / "counting" / "engines"  # of several workers one gets them all, and starts each server once


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and put first what others shall not take over."""
    above = {path: {path, *path.parents} for path in {item.path for item in items}}
    items.sort(key=lambda item: FIRST not in above[item.path])
    for item in items:
        if not above[item.path].isdisjoint(SLOW) or not SLOW_FIXTURES.isdisjoint(
            getattr(item, "fixturenames", ())
        ):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium, kept for all tests of a process."""
    from browsing import launched

    with launched() as found:
        yield found
