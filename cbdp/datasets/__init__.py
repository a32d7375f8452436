"""Synthetic public data sets: invented trips of invented people, fitted to published statistics of real systems.

Nothing here comes from a person, so these sets may be counted, printed and shared freely.
"""

from typing import TYPE_CHECKING, Any

from cbdp.datasets.ann_arbor import ann_arbor
from cbdp.datasets.dataset import Dataset, Statistic

if TYPE_CHECKING:
    from cbdp.transit.city import City

__all__ = ["Dataset", "Statistic", "ann_arbor", "ann_arbor_city"]


def ann_arbor_city(*arguments: Any, **options: Any) -> "City":
    """The built-in city as a shuttle service sees it: see `cbdp.datasets.shuttle_city`.

    >>> import cbdp
    >>> city = cbdp.datasets.ann_arbor_city()
    >>> len(city.zones), int(city.hub.sum())
    (4, 8)
    """
    from cbdp.datasets.shuttle_city import ann_arbor_city as shuttle_city

    return shuttle_city(*arguments, **options)
