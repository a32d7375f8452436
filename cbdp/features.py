"""What is counted: universes of trip types, features that group them, and their order by refinement. The code is `cbdp_features`, in features/."""

from cbdp_features import (
    SINGLETON,
    TOTAL,
    Attribute,
    Cells,
    Dimension,
    Feature,
    FeatureDag,
    Partition,
    Universe,
    days,
    odmts,
    opal,
    periods,
)

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
