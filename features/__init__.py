"""What is counted: universes of trip types, features that group them, and their order by refinement."""

from cbdp.features.calendar import days, periods
from cbdp.features.dag import SINGLETON, TOTAL, Cells, FeatureDag
from cbdp.features.dimension import Attribute, Dimension
from cbdp.features.feature import Feature
from cbdp.features.partition import Partition
from cbdp.features.presets import odmts, opal
from cbdp.features.universe import Universe

__all__ = [
    "SINGLETON",
    "TOTAL",
    "Attribute",
    "Cells",
    "Dimension",
    "Feature",
    "FeatureDag",
    "Partition",
    "Universe",
    "days",
    "odmts",
    "opal",
    "periods",
]
