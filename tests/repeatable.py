"""Noise in tests: from a seed of the test's own name, so that what fails once fails again, on any machine and in any order.

What a release draws from the operating system comes from that seed instead; what a fixture draws, from a seed of the fixture's name.
Tests that are about the operating system's words are marked `system_noise`. Programs that tests start draw as always.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cbdp.privacy.entropy import InsecureSeededEntropy, SystemEntropy

_system = SystemEntropy.words


@contextmanager
def noise_of(name: str) -> Iterator[None]:
    """Until the end, words for noise follow from a name; then they come from where they came before."""
    source = InsecureSeededEntropy(zlib.crc32(name.encode()))

    def words(_: SystemEntropy, n: int, bits: int) -> Any:
        return source.words(n, bits)

    before, SystemEntropy.words = SystemEntropy.words, words  # type: ignore[method-assign]
    try:
        yield
    finally:
        SystemEntropy.words = before  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    if item.get_closest_marker("system_noise"):
        return (yield)
    with noise_of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Any:
    """A fixture that several tests share draws the same whichever of them comes first."""
    if SystemEntropy.words is _system:
        return (yield)
    with noise_of(f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param', '')!r}]"):
        return (yield)
