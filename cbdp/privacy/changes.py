"""How much one unit changes the counts of each feature of a DAG; worked out once."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from cbdp.features import FeatureDag
from cbdp.features.telling import telling
from cbdp.privacy.sensitivity import Change, change_of
from cbdp.privacy.unit import Unit

_KEPT: WeakKeyDictionary[FeatureDag, dict[tuple[str, Unit], Change]] = WeakKeyDictionary()


def change_in(features: FeatureDag, name: str, unit: Unit) -> Change:
    """The most by which one unit can change the counts of this feature: it follows from the unit and from what the feature tells apart.

    Proof: docs/proofs/sensitivity.md.

    >>> from cbdp.features import Universe
    >>> from cbdp.privacy.unit import Person
    >>> dag = FeatureDag(Universe(stop=["A", "B"], time=["am", "pm"]), [])
    >>> [change_in(dag, name, Person("card", 2, apart="time")).l2_squared for name in ("total", "singleton")]
    [4, 2]
    """
    kept = _KEPT.setdefault(features, {})
    if (name, unit) not in kept:
        kept[name, unit] = change_of(unit, telling(features, name, unit.per, unit.apart))
    return kept[name, unit]
