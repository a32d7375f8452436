"""The features and public facts that tests of budgets share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cbdp.features import Dimension, Feature, FeatureDag, Universe
from cbdp.privacy.expected_error import DemandFacts

STOPS = Dimension([f"S{n}" for n in range(12)], zone=[f"Z{n % 3}" for n in range(12)])
UNIVERSE = Universe(origin=STOPS, destination=STOPS, time=range(6))
DAG = FeatureDag(
    UNIVERSE,
    [
        Feature("time", by="time"),
        Feature("from", by=["origin.zone", "time"]),
        Feature("to", by=["destination.zone", "time"]),
        Feature("zone", by=["origin.zone", "destination.zone", "time"]),
    ],
)
LEVELS = ["total", "time", "from", "to", "zone", "singleton"]
STATED = DemandFacts(1, 5000)


def dense_variance(dag: FeatureDag, precision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares with a matrix of every feature's sums: the mean variance of a count of each feature."""
    size = dag.universe.size
    sums = {}
    for name in dag.features:
        element = dag.partition(name).of_every_type()
        sums[name] = np.zeros((dag.size(name), size))
        sums[name][element, np.arange(size)] = 1.0
    known = sum(p * sums[name].T @ sums[name] for name, p in zip(sums, precision, strict=True))
    spread = np.linalg.inv(known)
    return np.array([np.mean(np.sum(of @ spread * of, axis=1)) for of in sums.values()])
