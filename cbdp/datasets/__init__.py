"""Synthetic public data sets: invented trips of invented people, fitted to published statistics of real systems.

Nothing here comes from a person, so these sets may be counted, printed and shared freely.
"""

from cbdp.datasets.ann_arbor import ann_arbor, ann_arbor_city
from cbdp.datasets.dataset import Dataset, Statistic

__all__ = ["Dataset", "Statistic", "ann_arbor", "ann_arbor_city"]
