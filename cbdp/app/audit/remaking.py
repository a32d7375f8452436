"""A release made again from what is published: by the mechanism that its recipe names, from the published noisy answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cbdp.mechanisms import Mechanism, of
from cbdp.privacy.measurement import Measurement
from cbdp.release.release import Release

# Says how the program is solved, not what its solution is: it is solved again with the default, which is exact.
HOW = "solver"


def remade(release: Release) -> Release:
    """The release made again. Raises `InputError` where the recipe does not say all that this takes."""
    return remaker(release).finish(answers(release))


def remaker(release: Release) -> Mechanism:
    """The mechanism that makes a release again."""
    settings = {name: value for name, value in release.recipe.settings.items() if name != HOW}
    return of(replace(release, recipe=replace(release.recipe, settings=settings)))


def answers(release: Release) -> Sequence[Measurement]:
    """The published noisy answers: measurements, or tables that are published as they were measured."""
    return list(release.measurements) or list(_tables(release))


def _tables(release: Release) -> Iterator[Measurement]:
    for name, table in release.tables.items():
        shown = np.flatnonzero(table).astype(np.int64)
        noise = release.recipe.tables.get(name)
        if noise is None:
            yield Measurement(name, table[shown], elements=shown)
        else:
            law = noise.law
            yield Measurement(name, table[shown], law.scale, elements=shown, law=law.name)
