"""Numbers and names as the report writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cbdp.release.roles import PLACE_NAMES, roles
from cbdp.release.summary import MAX_PICTURABLE_EPSILON, factor_text
from cbdp.release.views import Published


def percent(share: float) -> str:
    """A share to read: small ones with two digits, and never 100 % for less than all.

    >>> percent(0.731), percent(0.011), percent(0.004), percent(0), percent(0.999), percent(2.75)
    ('73 %', '1.1 %', '0.4 %', '0 %', '99.9 %', '275 %')
    """
    value = 100 * share
    if 99 < value < 100:  # not everything
        return f"{min(math.floor(10 * value) / 10, 99.9)} %"
    return f"{value:,.0f} %" if value >= 10 else f"{value:.2g} %"


def at_most(share: float) -> str:
    """A share that is not exceeded: rounded up.

    >>> at_most(0.7311), at_most(0.99995)
    ('73.2 %', '100 %')
    """
    return f"{math.ceil(1000 * share - 1e-9) / 10:g} %"


def odds_bound(epsilon: float) -> str:
    """What e^ε is compared with."""
    return factor_text(epsilon) if epsilon > MAX_PICTURABLE_EPSILON else f"less than {factor_text(epsilon)}"


def confidence_text(published: Published) -> str:
    return f"{100 * published.confidence:g} %"


def published_features(published: Published) -> Sequence[str]:
    """The features that are published, coarse ones first."""
    named = published.release.tables
    return [n for n in published.dag.features if n in named or not named]


def display_labels(published: Published, attribute: str) -> list[str]:
    """The labels of an attribute; stops by their names, and by their ids where these differ."""
    labels, places = published.labels(attribute), published.places
    if places is None or not _are_stop_ids(published, attribute):
        return labels
    names = {str(stop): name for stop, name in zip(places.ids, places.names, strict=True)}
    return [label if names.get(label, label) == label else f"{names[label]} ({label})" for label in labels]


def _are_stop_ids(published: Published, attribute: str) -> bool:
    """Whether labels are ids of stops. Times may look like some, too."""
    dimension = published.dag.universe.dimensions.get(attribute)
    parts = roles(published.dag)
    if dimension is None or attribute == parts.time:
        return False
    return attribute in (*PLACE_NAMES, *(parts.ends or ()))


def attribute_words(name: str) -> str:
    """The name of an attribute as people say it.

    >>> attribute_words("origin.zone")
    'origin zone'
    """
    return name.replace(".", " ")
