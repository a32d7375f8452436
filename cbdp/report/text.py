"""Numbers and names as the report writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cbdp.report.published import Published


def number(value: float) -> str:
    """Whole numbers with separators, others with three digits.

    >>> number(37709), number(2.71828), number(22026.47), number(1e9)
    ('37,709', '2.72', '22,026', '1,000,000,000')
    """
    if value >= 1e15:
        return f"{value:.2e}"
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.3g}"


def percent(share: float) -> str:
    """A share to read: small ones with two digits, and never 100 % for less than all.

    >>> percent(0.731), percent(0.011), percent(0.004), percent(0), percent(0.999), percent(2.75)
    ('73 %', '1.1 %', '0.4 %', '0 %', '99.9 %', '275 %')
    """
    value = 100 * share
    if 99 < value < 100:  # not everything
        return f"{min(math.floor(10 * value) / 10, 99.9)} %"
    return f"{value:,.0f} %" if value >= 10 else f"{value:.2g} %"


def at_most(share: float) -> str:
    """A share that is not exceeded: rounded up.

    >>> at_most(0.7311), at_most(0.99995)
    ('73.2 %', '100 %')
    """
    return f"{math.ceil(1000 * share - 1e-9) / 10:g} %"


HUGE = 30  # an ε whose factor nobody can picture


def factor(epsilon: float) -> str:
    """e^ε, as far as it can be written, rounded up: it is the most that may be.

    >>> factor(1), factor(0.1), factor(6)
    ('2.8', '1.11', '404')
    """
    if epsilon > HUGE:
        return "more than 10 million million"
    value = math.exp(epsilon)
    digits = 0 if value >= 100 else 1 if value > 1.99 else 2
    up = math.ceil(value * 10**digits - 1e-9) / 10**digits
    return number(up) if not digits else f"{up:.{digits}f}"


def bounded(epsilon: float) -> str:
    """What e^ε is compared with."""
    return factor(epsilon) if epsilon > HUGE else f"less than {factor(epsilon)}"


def confident(published: Published) -> str:
    return f"{100 * published.confidence:g} %"


def tables(published: Published) -> Sequence[str]:
    """The features that are published, coarse ones first."""
    named = published.release.tables
    return [n for n in published.dag.features if n in named or not named]
