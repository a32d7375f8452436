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
SLOW = [  # whole folders and modules that are slow: servers and clusters, browsers, benchmarks, attacks, many releases
    HERE / name
    for name in (
        "app/audit",
        "app/presets",
        "app/test_inspect.py",
        "audit",
        "benchmarks",
        "docs/test_how_to.py",
        "docs/test_tutorials.py",
        "mechanisms/test_public.py",
        "mechanisms/test_recipes.py",
        "privacy/test_optimal.py",
        "report/plan",
        "report/test_browser.py",
        "report/test_support.py",
        "transit",
        "counting/engines",
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
        if not above[item.path].isdisjoint(SLOW):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium, kept for all tests of a process."""
    from browsing import launched

    with launched() as found:
        yield found
