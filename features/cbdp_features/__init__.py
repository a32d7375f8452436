"""What is counted: universes of trip types, features that group them, and their order by refinement."""

from cbdp_features.calendar import days, periods
from cbdp_features.dag import SINGLETON, TOTAL, Cells, Feature, FeatureDag, odmts, opal
from cbdp_features.universe import Attribute, Dimension, Partition, Universe

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
