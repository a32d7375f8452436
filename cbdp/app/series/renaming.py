"""Stops that got another name with a new version of a series: a file for each version, with the old and the new name. Public."""

from __future__ import annotations

import csv
from collections.abc import Hashable
from typing import TYPE_CHECKING

from cbdp.app.plan.periods import series_of
from cbdp.errors import InputError
from cbdp.features import FeatureDag
from cbdp.release.release import Release
from cbdp.release.renaming import renamed

if TYPE_CHECKING:
    from cbdp.app.config import Config

OLD, NEW = "old", "new"


def names_since(config: Config, version: int) -> dict[Hashable, Hashable]:
    """Old name → new name of what was renamed with this version; nothing where no file is stated."""
    stated = series_of(config).renamed or {}
    if str(version) not in stated:
        return {}
    with config.source.at("series", "renamed", str(version)):
        return _read(config, stated[str(version)])


def _read(config: Config, written: str) -> dict[Hashable, Hashable]:
    path = config.path(written)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as why:
        raise InputError(f"the file {written!r} cannot be read: {why}") from None
    pairs: dict[Hashable, Hashable] = {}
    for number, row in enumerate(rows, 2):
        old, new = ((row.get(column) or "").strip() for column in (OLD, NEW))
        if not old or not new:
            raise InputError(
                f"line {number} of {written!r} does not name an old and a new stop: it needs the columns old and new"
            )
        if old in pairs or new in pairs.values():
            twice = old if old in pairs else new
            raise InputError(
                f"line {number} of {written!r} names {twice!r} a second time: a stop has one new name. Where stops were joined or split, their "
                "counts are of other trip types: leave them out"
            )
        pairs[old] = new
    return pairs


def check_names(before: FeatureDag, after: FeatureDag, names: dict[Hashable, Hashable]) -> None:
    """Refuse names that were not there before, are not there now, or stand for something else."""
    old, new = (
        {value for d in dag.universe.dimensions.values() for value in d.values} for dag in (before, after)
    )
    for was, is_now in names.items():
        if was not in old:
            raise InputError(
                f"{was!r} is called {is_now!r}, and the version before has no {was!r}: check the file"
            )
        if is_now not in new or is_now in old:
            state = "was there before" if is_now in old else "is not there now"
            raise InputError(f"{was!r} is called {is_now!r}, which {state}: check the file")


def as_named_now(config: Config, release: Release) -> Release:
    """A release of an earlier version, with the names that stops have in the present one."""
    if release.series is None:
        return release
    names: dict[Hashable, Hashable] = {}
    for version in range(release.series.version + 1, series_of(config).version + 1):
        step = names_since(config, version)
        names = {was: step.pop(is_now, is_now) for was, is_now in names.items()} | step
    return renamed(release, names) if names else release
