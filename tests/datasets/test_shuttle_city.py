"""The synthetic city as a shuttle service sees it."""

from __future__ import annotations

from cbdp.datasets import ann_arbor, ann_arbor_city
from cbdp.datasets.ann_arbor import geography
from cbdp.transit.modes import ModeRule


def test_built_in_modes_are_the_data_sets() -> None:
    """The rule gives every pair of the synthetic city the mode that its data set has."""
    city = ann_arbor_city()
    modes = ModeRule().choose(city)
    assert len(modes.labels) == 12
    named = modes.names(ann_arbor(hours=("08:00", "08:30")).universe, city)
    assert (named == geography().mode).all()
