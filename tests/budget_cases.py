"""The features and public facts that tests of budgets share."""

from __future__ import annotations

from cbdp.features import Dimension, Feature, FeatureDag, Universe
from cbdp.privacy.budget import DemandFacts

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
