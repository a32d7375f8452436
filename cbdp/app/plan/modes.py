"""The modes of a plan: from a public table of pairs, or from bands of distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbdp.app.config import Config, ModesSection
from cbdp.app.plan.public_files import PLACES, code_of, rows_with
from cbdp.errors import InputError
from cbdp.features import Attribute, Universe, places
from cbdp.features.places import Stops
from cbdp.parts import did_you_mean


def with_modes(config: Config, universe: Universe, stops: Stops | None) -> Universe:
    """The universe with the attribute `mode`, if modes are a public function of the trip type."""
    modes = config.universe.modes
    if modes is None or modes.column:
        return universe
    if modes.table:
        with config.source.at("universe", "modes", "of" if modes.of != PLACES else "table"):
            return _by_table(config, universe, modes, modes.table)
    with config.source.at("universe", "modes", "distance_km"):
        if stops is None or not set(PLACES) <= set(universe.dimensions):
            raise InputError("bands of distance need stops with coordinates: name their file in data.stops")
        return universe.with_attribute("mode", PLACES, places.distance_bands(stops, modes.distance_km))


def _by_table(config: Config, universe: Universe, modes: ModesSection, file: str) -> Universe:
    """Labels for pairs (or triples) of dimensions or of their attributes, from the rows of a public table."""
    keyed = _keyed(universe, modes.of)
    rows = rows_with(config.path(file), [*modes.of, modes.label])
    table = np.full([len(a.labels) for a in keyed], modes.otherwise, dtype=object)
    seen = np.zeros(table.shape, dtype=bool)
    codes = [{str(label): code for code, label in enumerate(a.labels)} for a in keyed]
    for number, row in enumerate(rows, 2):
        place = tuple(
            code_of(row[a.name], a.name, known, number, file) for a, known in zip(keyed, codes, strict=True)
        )
        label = row[modes.label]
        if not label:
            raise InputError(f"row {number} of {file!r} has no mode: give it one, or leave the row out")
        if seen[place] and table[place] != label:
            raise InputError(
                f"row {number} of {file!r} gives the mode {label!r} to what has {table[place]!r}: keep one"
            )
        table[place], seen[place] = label, True
    full: NDArray[Any] = table[np.ix_(*(a.codes for a in keyed))]
    return universe.with_attribute("mode", [a.of[0] for a in keyed], full)


def _keyed(universe: Universe, names: Sequence[str]) -> list[Attribute]:
    """The attributes that a table of modes is keyed by."""
    for name in names:
        if name not in universe.attributes:
            cure = did_you_mean(name, list(universe.attributes))
            raise InputError(f"unknown attribute {name!r} in universe.modes.of: {cure}")
        if len(universe.attribute(name).of) > 1:
            raise InputError(
                f"universe.modes.of names {name!r}, which depends on several dimensions: use attributes of one each"
            )
    return [universe.attribute(name) for name in names]
