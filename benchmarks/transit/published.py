"""What the case study printed: Table 1, and the trips of the data sets for which it found no fleet."""

from __future__ import annotations

from collections.abc import Mapping

MECHANISMS = ("O5", "O4", "O3", "H5", "H4", "H3", "Lap")
METRICS = ("shuttles", "wait", "idle")

# relative errors of shuttles, mean wait and mean idle time at ε = 1; of the original the figures themselves
TABLE_1: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "weekday": {
        "O5": (0.158, 0.040, 0.061), "O4": (0.483, 0.003, 0.196), "O3": (0.510, 0.028, 0.145), "H5": (0.788, 0.028, 0.483),
        "H4": (1.262, 0.007, 0.578), "H3": (1.394, 0.029, 0.586), "Lap": (1.518, 0.029, 0.587), "original": (99, 135.0, 5130),
    },
    "weekend": {
        "O5": (0.252, 0.005, 0.004), "O4": (0.843, 0.024, 0.049), "O3": (0.891, 0.024, 0.051), "H5": (2.647, 0.025, 0.150),
        "H4": (3.694, 0.026, 0.159), "H3": (3.704, 0.024, 0.172), "Lap": (4.371, 0.021, 0.192), "original": (48, 127.8, 4779),
    },
}  # fmt: skip

# mean trips from 8 to 10 am on the weekday, by ε: no fleet was found on these in 24 hours
TRIPS: Mapping[tuple[str, str], float] = {
    ("Lap", "0.1"): 320_940.4,
    ("Lap", "0.05"): 656_577.4,
    ("Lap", "0.01"): 3_312_350.0,
    ("H5", "0.1"): 839_150.5,
    ("H5", "0.05"): 1_698_770.0,
    ("H5", "0.01"): 8_543_366.5,
}
DAY_TRIPS, DAY_LAPLACE, DAY_TYPES = 37_714, 261_032, 28 * 16_900  # of the whole day at ε = 1


def laplace_trips() -> float:
    """The trips from 8 to 10 am that the printed inflation of the whole day implies for Laplace noise at ε = 1.

    >>> round(laplace_trips())
    36781
    """
    return 4_878 + 67_600 * (DAY_LAPLACE - DAY_TRIPS) / DAY_TYPES
