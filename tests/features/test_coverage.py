"""Which dimensions and attributes the measured tables tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from cbdp.features import Dimension, Feature, FeatureDag, Universe, odmts
from cbdp_features.dag import determines, distinguished_attributes, undistinguished

STOPS = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
UNIVERSE = Universe(
    origin=STOPS, destination=STOPS, day=["sat", "sun"], time=["am", "pm"], fare=["all"]
).with_attribute(
    "mode", ("origin", "destination"), np.array([["w", "b", "b"], ["b", "w", "b"], ["b", "b", "w"]])
)
BETWEEN = UNIVERSE.with_attribute("route", ("destination", "origin"), lambda d, o: f"{o in 'AB'}{d in 'AB'}")


def dag(*by: list[str]) -> FeatureDag:
    return FeatureDag(BETWEEN, [Feature(f"t{n}", by=attributes) for n, attributes in enumerate(by)])


@pytest.mark.parametrize(
    ("table", "by", "told"),
    [
        (["origin"], ["origin.zone"], True),
        (["origin.zone"], ["origin"], False),
        (["origin", "time"], ["time", "origin.zone"], True),
        (["origin", "destination"], ["mode"], True),
        (["origin", "destination.zone"], ["mode"], False),
        (["destination.zone", "origin.zone"], ["route"], True),
        (["route"], ["origin.zone"], True),
        (["route"], ["origin"], False),
        (["mode", "day"], ["mode"], True),
        (["mode"], ["fare"], True),  # there is one
        (["time"], [], True),
    ],
)
def test_counts_are_sums_of_a_table_or_not(table: list[str], by: list[str], told: bool) -> None:
    """By the same attributes, by what follows from them, and by nothing else."""
    assert determines(dag(table), "t0", by) is told
    assert determines(dag(table), "singleton", by)


def test_refinement_says_the_same_where_it_can_be_asked() -> None:
    """For every pair of tables, `determines` is the order of the features themselves."""
    made = dag(
        ["origin"],
        ["origin.zone"],
        ["origin", "destination"],
        ["mode"],
        ["route", "time"],
        ["day", "time"],
        ["day"],
    )
    for fine in made.features:
        for coarse, feature in made.features.items():
            if coarse != "singleton":
                assert determines(made, fine, feature.by) is made.refines(fine, coarse), (fine, coarse)


def test_what_no_table_covers_is_listed() -> None:
    """Trip types are no table; a dimension of one value needs none; what is not measured does not count."""
    made = dag(["origin.zone", "destination.zone", "time"], ["day", "time"])
    assert undistinguished(made, made.features) == ("origin", "destination", "mode")
    assert distinguished_attributes(made, made.features, "origin") == ("origin.zone",)
    assert undistinguished(made, ["t0", "singleton"]) == ("origin", "destination", "day", "mode")
    assert distinguished_attributes(made, ["t0"], "day") == ()
    assert "time" in undistinguished(made, ["total", "singleton"])


def test_presets_leave_only_stops_to_their_zones() -> None:
    """With days and fares every dimension but the stops has a table, and these have their zones."""
    universe = Universe(
        origin=STOPS, destination=STOPS, day=["sat", "sun"], time=["am", "pm"], fare=["full", "half"]
    )
    made = odmts(universe, level=4)
    assert undistinguished(made, made.features) == ("origin", "destination")
    assert distinguished_attributes(made, made.features, "destination") == ("destination.zone",)
