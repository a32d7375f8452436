"""Conditions on trip types as people write them: "time<10:00", "origin=A,B", or pairs of stops."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cbdp.errors import InputError
from cbdp.features import Attribute, Universe
from cbdp.parts import did_you_mean
from cbdp_features.calendar import seconds_of_day
from cbdp_features.queries import Filter

Where = str | Sequence[str] | Mapping[Any, Any]

CONDITION = re.compile(r"\s*([^=<>!]+?)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*$")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ATTRIBUTE_JOINER = "+"  # joins attributes, and their labels: origin+destination=A+B
MAX_LABEL_COMBINATIONS = 2**24  # combinations of labels that a condition may be about


def conditions(universe: Universe, where: Where | None) -> tuple[Filter, ...]:
    """All conditions; each must be met.

    They are given as text, like "time<10:00" or "origin+destination=A+B,B+C", or as a mapping from attributes to a label, or a list of
    labels: `{"time": ["08:00", "08:30"], ("origin", "destination"): [("A", "B"), ("B", "C")]}`.

    >>> stops = Universe(origin=["A", "B"], time=["08:00", "09:00", "10:00"])
    >>> [c.wanted.tolist() for c in conditions(stops, ["time<10:00", "origin=B"])]
    [[True, True, False], [False, True]]
    """
    if where is None:
        return ()
    if isinstance(where, Mapping):
        return tuple(_condition_of_labels(universe, names, labels) for names, labels in where.items())
    if isinstance(where, str):
        return (_condition_of_text(universe, where),)
    texts: object = where
    if isinstance(texts, bytes | bytearray) or not isinstance(texts, Iterable):
        raise InputError(
            f"where is {where!r}: write conditions like 'time<10:00' or 'origin=A,B', or give a mapping like {{'origin': ['A', 'B']}}"
        )
    return tuple(_condition_of_text(universe, text) for text in texts)


def attribute_of(universe: Universe, name: object) -> Attribute:
    if not isinstance(name, str) or name not in universe.attributes:
        cure = did_you_mean(str(name), list(universe.attributes))
        raise InputError(f"unknown attribute {name!r}: {cure}")
    return universe.attribute(name)


def _condition_of_labels(universe: Universe, names: object, labels: object) -> Filter:
    """A label or several; of several attributes, combinations of labels."""
    several = isinstance(names, tuple)
    listed_names: tuple[object, ...] = names if isinstance(names, tuple) else (names,)
    attributes = [attribute_of(universe, name) for name in listed_names]
    if not several and labels in _labels(attributes[0]):  # one label, which may be text or a tuple itself
        labels = [labels]
    one = isinstance(labels, str) or not isinstance(labels, Iterable)
    listed: Iterable[object] = [labels] if one else cast("Iterable[object]", labels)
    rows = [tuple(row) if several and isinstance(row, Iterable) else (row,) for row in listed]
    return _label_filter(attributes, rows, [{v: v for v in a.labels} for a in attributes])


def _labels(attribute: Attribute) -> _Labels:
    return _Labels(attribute.labels)


class _Labels:
    """Labels that anything may be looked for among, hashable or not."""

    def __init__(self, labels: Sequence[Hashable]) -> None:
        self._labels = set(labels)

    def __contains__(self, label: object) -> bool:
        return isinstance(label, Hashable) and label in self._labels


def _condition_of_text(universe: Universe, text: object) -> Filter:
    match = CONDITION.match(text) if isinstance(text, str) else None
    if match is None:
        raise InputError(
            f"{text!r} is not a condition: write it like 'time<10:00', 'origin=A,B' or 'origin+destination=A+B,B+C'"
        )
    names, sign, label_text = match.groups()
    if sign in COMPARISONS:
        return _ordered_filter(attribute_of(universe, names), sign, label_text)
    several = names not in universe.attributes and ATTRIBUTE_JOINER in names
    attributes = [attribute_of(universe, n) for n in (names.split(ATTRIBUTE_JOINER) if several else [names])]
    spoken = [{str(label): label for label in a.labels} for a in attributes]
    listed = (
        [label_text]
        if not several and label_text in spoken[0]
        else [t.strip() for t in label_text.split(",")]
    )
    parts = [t.split(ATTRIBUTE_JOINER) if several else [t] for t in listed]
    rows = [(*map(_as_labelled, row, spoken), *row[len(spoken) :]) for row in parts]
    condition = _label_filter(attributes, rows, spoken)
    return Filter(condition.attributes, ~condition.wanted) if sign == "!=" else condition


def _label_filter(
    attributes: Sequence[Attribute],
    rows: Sequence[tuple[object, ...]],
    spoken: Sequence[Mapping[Any, Hashable]],
) -> Filter:
    shape = [len(a.labels) for a in attributes]
    if np.prod(shape, dtype=float) > MAX_LABEL_COMBINATIONS:
        names = ", ".join(a.name for a in attributes)
        raise InputError(
            f"{names} have more than {MAX_LABEL_COMBINATIONS:,} combinations: give a condition on each alone"
        )
    mask = np.zeros(shape, dtype=bool)
    code = [{label: c for c, label in enumerate(a.labels)} for a in attributes]
    for row in rows:
        if len(row) != len(attributes):
            names = ", ".join(a.name for a in attributes)
            raise InputError(f"{row!r} has {len(row)} labels: give one each of {names}")
        for label, attribute, labels_by_text in zip(row, attributes, spoken, strict=True):
            if not isinstance(label, Hashable) or label not in labels_by_text:
                raise InputError(_unknown_label_text(label, attribute))
        mask[tuple(c[k[label]] for label, c, k in zip(row, code, spoken, strict=True))] = True
    return Filter(tuple(a.name for a in attributes), mask)


def _unknown_label_text(label: object, attribute: Attribute) -> str:
    labels = [str(v) for v in attribute.labels]
    cure = did_you_mean(str(label), labels)
    if cure.startswith("there are") and len(labels) > 10:
        cure = f"there are {', '.join(labels[:9])}, … ({len(labels):,} in all)"
    return f"{attribute.name} has no {label!r}: {cure}"


def _ordered_filter(attribute: Attribute, sign: str, bound_text: str) -> Filter:
    """Labels before or after one: times by the clock (periods by their beginning), numbers by size, other text by alphabet."""
    for read, like in ((_clock, "a time of day, like 09:00"), (float, "a number, like 9"), (str, "text")):
        try:
            keys: list[Any] = [read(str(label)) for label in attribute.labels]
        except (InputError, ValueError):
            continue
        try:
            end = read(bound_text)
        except (InputError, ValueError):  # by alphabet, "9" would come after every time
            raise InputError(f"{attribute.name} {sign} {bound_text!r} cannot be told: write {like}") from None
        mask: NDArray[np.bool_] = np.array([COMPARISONS[sign](key, end) for key in keys])
        return Filter((attribute.name,), mask)
    raise AssertionError  # text is always text


def _as_labelled(text: str, spoken: Mapping[str, Hashable]) -> str:
    """A time of day that is written otherwise, 8:00 for 08:00, as the labels have it."""
    if text in spoken:
        return text
    try:
        return next(label for label in spoken if _clock(label) == _clock(text))
    except (InputError, ValueError, StopIteration):
        return text


def _clock(text: str) -> int:
    return seconds_of_day(text)
