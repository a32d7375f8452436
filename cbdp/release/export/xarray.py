"""xarray: the trips as an array over the dimensions, and every feature's counts over the attributes it groups by."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.release.export.base import Format, optional_library, provenance_lines
from cbdp.release.release import Release
from cbdp_features.tables import kind_of, text_of

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[np.int64 | np.object_]
Variable = tuple[str | tuple[str, ...], Array]  # the names of its axes, and the numbers

MAX_DENSE_NUMBERS = 2**24  # numbers up to which an array holds all, zeros too


@dataclass(frozen=True)
class Xarray(Format):
    name: ClassVar[str] = "xarray"
    ending: ClassVar[str] = ".nc"
    about: ClassVar[str] = "NetCDF of an xarray Dataset"
    package: ClassVar[str | None] = "xarray"
    install: ClassVar[str] = "pip install 'cbdp[xarray]'"

    def write(self, release: Release, path: Path) -> None:
        """Write the dataset as NetCDF."""
        optional_library("h5netcdf", "xarray")
        dataset(release).to_netcdf(path, engine="h5netcdf")


def dataset(release: Release) -> xarray.Dataset:
    """An `xarray.Dataset` of whole trips, with the labels as coordinates.

    `trips` is an array over all dimensions, or, where that would not fit, a list of the types with trips, along `type`.
    Each feature has `<name>_count`, and `<name>_low` and `<name>_high` where it has intervals.
    """
    library = optional_library("xarray", "xarray")
    universe, axes = release.features.universe, {}
    codes = universe.unrank_codes(release.index)
    shape = [len(d) for d in universe.dimensions.values()]
    variables: dict[str, Variable] = {}
    if math.prod(shape) <= MAX_DENSE_NUMBERS:
        trips = np.zeros(shape, dtype=np.int64)
        trips[tuple(codes)] = release.value
        variables["trips"] = (tuple(universe.dimensions), trips)
        axes = {n: _coordinate(d.values) for n, d in universe.dimensions.items()}
    else:
        for (n, d), code in zip(universe.dimensions.items(), codes, strict=True):
            variables[f"{n}_of_trip"] = ("type", _coordinate(d.values)[code])
        variables["trips"] = ("type", release.value)
    for name, feature in release.features.features.items():
        if name != SINGLETON and _fits(release, name):
            variables |= _feature(release, name, feature.by)
            axes |= {by: _coordinate(universe.attributes[by].labels) for by in feature.by}
    twice = set(variables) & {*axes, "type"}
    if twice:
        raise InputError(
            f"{min(twice)!r} would name an array and its coordinates: rename the feature or dimension"
        )
    about = {"mechanism": release.mechanism, "claim": str(release.promise), **provenance_lines(release)}
    return library.Dataset(variables, {n: (n, labels) for n, labels in axes.items()}, about)


def _fits(release: Release, name: str) -> bool:
    attributes = release.features.partition(name).attributes
    return math.prod(len(a.labels) for a in attributes) <= MAX_DENSE_NUMBERS


def _feature(release: Release, name: str, by: Sequence[str]) -> dict[str, Variable]:
    """A feature's numbers over its attributes; combinations that cannot occur have no trips."""
    partition = release.features.partition(name)
    shape = [len(a.labels) for a in partition.attributes]
    place = tuple(partition.label_codes())
    variables: dict[str, Variable] = {}
    for what, values in release.table(name).numbers.items():
        array = np.zeros(shape, dtype=np.int64)
        array[place] = values if by else values[0]
        variables[f"{name}_{what}"] = (tuple(by), array)
    return variables


def _coordinate(labels: Sequence[Hashable]) -> Array:
    """Whole numbers as numbers, everything else as text."""
    if kind_of(labels) == "integer":
        return np.array(labels, dtype=np.int64)
    return np.array([text_of(label) for label in labels], dtype=object)
