"""Counts that are public already, from the configuration and from public files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cbdp.app.config import Config
from cbdp.app.plan.features import check_features
from cbdp.app.plan.public_files import table_of
from cbdp.errors import InputError
from cbdp.estimate.public import COUNT, read_public, whole_table
from cbdp.features import FeatureDag, places

KEYS = ("privacy", "public")


def public_counts(config: Config, features: FeatureDag) -> dict[str, tuple[int, ...]] | None:
    """The public counts of a configuration by feature, checked against each other; None if it states none."""
    given = config.privacy.public
    if given is None:
        return None
    if isinstance(given, Mapping):
        check_features(config, features, KEYS, given)
    with config.source.at(*KEYS):
        tables = given if isinstance(given, Mapping) else {_feature_of(config, features, given): given}
        made = {name: _counts(config, features, name, counts) for name, counts in tables.items()}
        return read_public(features, made)


def _counts(config: Config, features: FeatureDag, name: str, given: int | str) -> Any:
    return _of_rows(features, name, table_of(config.path(given)), given) if isinstance(given, str) else given


def _feature_of(config: Config, features: FeatureDag, file: str) -> str:
    """The feature that a file's columns name."""
    rows = table_of(config.path(file))
    columns = set(rows[0]) - {COUNT} if rows else set()
    for name, feature in features.features.items():
        if set(feature.by) == columns:
            return name
    wanted = "; ".join(f"{n}: {', '.join((*f.by, COUNT))}" for n, f in features.features.items())
    found = ", ".join(rows[0]) if rows else "none"
    raise InputError(
        f"{file!r} has the columns {found}, which are those of no feature ({wanted}): rename them"
    )


def _of_rows(features: FeatureDag, name: str, rows: list[places.Row], file: str) -> tuple[int, ...]:
    """The counts of a file's rows. A file holds text: labels are compared as they are written."""
    partition = features.partition(name)
    by = features.features[name].by
    for column in (*by, COUNT):
        if not rows or column not in rows[0]:
            raise InputError(
                f"{file!r} has no column {column!r}: public counts of {name!r} need {', '.join((*by, COUNT))}"
            )
    keys = {a: [row[a] for row in rows] for a in by}
    labels = {a.name: {str(label): label for label in a.labels} for a in partition.attributes}
    known = {a: [labels[a].get(text) for text in keys[a]] for a in by}
    elements = partition.find(known) if by else np.zeros(len(rows), dtype=np.int64)
    return whole_table(features, name, elements, [_number(row[COUNT]) for row in rows], keys)


def _number(written: str) -> int | str:
    """A whole number, or what is written instead."""
    digits = written.strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() else written
