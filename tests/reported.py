"""What a report says, as a browser would find it."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import cbdp
from cbdp.release.release import Release
from cbdp_features.places import Stops

HOSTILE = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>\u2028"


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in self.raw:
            self._inside = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = None

    def handle_data(self, data):
        if self._inside is None:
            if data.strip() or "\n" not in data:  # lines between blocks are no text
                self.words.append(data)
        else:
            self.raw[self._inside][-1] += data

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    @property
    def data(self):
        return json.loads(self.raw["script"][0])


def with_stops(city) -> Stops:
    s = city.stops
    return Stops(
        tuple(s["stop"].tolist()), tuple(s["stop"].tolist()), s["lat"], s["lon"], tuple(s["zone"].tolist())
    )


def grouped(release: Release, by: list[str]) -> Counter:
    """The published trips by attributes, row by row from the table of trips."""
    universe, trips = release.features.universe, release.trips()
    names = list(universe.dimensions)
    found: Counter = Counter()
    for row in zip(*(trips[name] for name in names), trips["count"].tolist(), strict=True):
        code = [universe.dimension(n).values.index(v) for n, v in zip(names, row[:-1], strict=True)]
        key = []
        for name in by:
            a = universe.attribute(name)
            key.append(a.labels[a.codes[tuple(code[names.index(dim)] for dim in a.of)]])
        found[tuple(key)] += row[-1]
    return found


def secured(release: Release) -> Release:
    """A simulation as if its noise had been secret: what a page says of a release is looked at, not whether it protects."""
    return replace(release, secure=True)


@cache
def rush_hour() -> tuple[Any, Release, Stops]:
    """The built-in city's rush hour, a release of it with intervals, and its stops."""
    city = cbdp.datasets.ann_arbor(seed=0, hours=("08:00", "10:00"))
    made = cbdp.ConstraintBased(city.features(), epsilon=1).simulate(city.trips, 5).with_intervals()
    return city, secured(made), with_stops(city)
