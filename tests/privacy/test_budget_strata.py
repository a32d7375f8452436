"""The closed form of least squares on a balanced design, against least squares worked out with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from budget_cases import DAG, dense_variance
from hypothesis import given, settings
from hypothesis import strategies as st

from cbdp.features import Dimension, Feature, FeatureDag, Universe
from cbdp.privacy.expected_error import design_strata

STOPS = Dimension(
    [f"S{n}" for n in range(12)],
    zone=[f"Z{n % 3}" for n in range(12)],
    region=["west" if n % 3 == 0 else "east" for n in range(12)],
    ring=[n // 3 for n in range(12)],
)
MODES = np.add.outer(np.arange(12) // 3, np.arange(12) // 3) % 4  # each as often in every pair of zones
CITY = Universe(origin=STOPS, destination=STOPS, time=range(3)).with_attribute(
    "mode", ("origin", "destination"), MODES
)
EVEN = {
    "case study": FeatureDag(
        CITY,
        [
            Feature("time", by="time"),
            Feature("zone", by=["origin.zone", "destination.zone", "time"]),
            Feature("mode", by=["mode", "time"]),
        ],
    ),
    "ends": FeatureDag(
        CITY,
        [
            Feature("zone", by=["origin.zone", "destination.zone"]),
            Feature("origin", by=["origin", "time"]),
            Feature("destination", by="destination"),
            Feature("rings", by=["origin.ring", "time"]),
        ],
    ),
    "three ways": FeatureDag(
        Universe(a=range(2), b=range(3), c=range(4)),
        [Feature("ab", by=["a", "b"]), Feature("bc", by=["b", "c"]), Feature("ca", by=["c", "a"])],
    ),
    "shared": DAG,
}
PRECISION = st.floats(1e-3, 1e3)


@pytest.mark.parametrize("name", EVEN)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_the_closed_form_is_least_squares_where_the_design_is_balanced(
    name: str, data: st.DataObject
) -> None:
    """For any precisions, on features that nest and cross evenly, to rounding."""
    dag = EVEN[name]
    precision = np.array([data.draw(PRECISION) for _ in dag.features])
    # precisions are up to six decades apart: what the dense inversion loses to rounding
    np.testing.assert_allclose(
        design_strata(dag).variance(precision), dense_variance(dag, precision), rtol=1e-5
    )


@pytest.mark.parametrize("name", EVEN)
def test_features_that_are_not_measured_are_told_by_those_that_are(name: str) -> None:
    """With the trip types alone, a count of r types has r times their variance."""
    dag = EVEN[name]
    precision = np.array([2.0 if n == "singleton" else 0.0 for n in dag.features])
    held = np.array([dag.universe.size / dag.size(n) for n in dag.features])
    np.testing.assert_allclose(design_strata(dag).variance(precision), held / 2.0)
    np.testing.assert_allclose(dense_variance(dag, precision), held / 2.0)


def test_many_splits_at_once_are_each_their_own() -> None:
    """Rows of precisions give the rows that they give one by one."""
    rows = np.random.default_rng(1).random((5, len(DAG.features)))
    together = design_strata(DAG).variance(rows)
    for row, made in zip(rows, together, strict=True):
        np.testing.assert_allclose(design_strata(DAG).variance(row), made)


def test_zones_of_unequal_size_and_modes_by_distance_are_near_it() -> None:
    """Where the design is not balanced, the closed form is within a tenth of least squares, on average over a table."""
    rng = np.random.default_rng(4)
    place = rng.normal(size=(20, 2))
    far = np.digitize(np.linalg.norm(place[:, None] - place, axis=2), (0.5, 1.0, 2.0))
    stops = Dimension(range(20), zone=np.digitize(place[:, 0], (-1.2, 0.0, 1.2)).tolist())
    city = Universe(origin=stops, destination=stops, time=range(2))
    city = city.with_attribute("mode", ("origin", "destination"), far).without_equal("origin", "destination")
    by = EVEN["case study"].features
    dag = FeatureDag(city, [by["time"], by["zone"], by["mode"]])
    sizes = dag.partition("zone").sizes
    assert sizes.max() > 5 * sizes.min()
    for part in ([0.2, 0.2, 0.2, 0.2, 0.2], [0.15, 0.15, 0.15, 0.15, 0.4], [0.24, 0.24, 0.25, 0.25, 0.02]):
        precision = np.square(part)
        off = np.sqrt(design_strata(dag).variance(precision) / dense_variance(dag, precision))
        assert np.abs(off - 1).max() < 0.1


def test_attributes_of_attributes_are_recognised() -> None:
    """A region is told by its zones without being asked for, and what two tables have in common by zones then includes it."""
    by_region = Feature("region", by=["origin.region", "time"])
    by_zone = Feature("zone", by=["origin.zone", "time"])
    found = design_strata(FeatureDag(CITY, [by_region, by_zone]))
    assert found.names == ("total", "region", "zone", "singleton")
    assert found.degrees.tolist() == [1, 5, 3, 12 * 12 * 3 - 9]
    assert found.refines.tolist() == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]


@pytest.mark.parametrize("zones", [40, 2000])
def test_universes_are_not_listed(zones: int) -> None:
    """A trillion trip types have a design as quickly as a thousand, also with as many zone pairs as can be listed."""
    stops = Dimension(range(200_000), zone=[n % zones for n in range(200_000)])
    dag = FeatureDag(
        Universe(origin=stops, destination=stops, time=range(28)),
        [Feature("zone", by=["origin.zone", "destination.zone", "time"]), Feature("origin", by="origin")],
    )
    found = design_strata(dag)
    assert found.degrees.sum() == pytest.approx(dag.universe.size)
    assert found.degrees.tolist()[:2] == [
        1,
        zones - 1,
    ]  # the total, and zones of origin, which both tables tell
