"""Attack a release before others do: ours, or any folder of count tables that a small file describes.

Names are loaded when first used, so that nobody pays for an audit who makes none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Audit": "cbdp.audit.run",
    "audit": "cbdp.audit.run",
    "build": "cbdp.audit.page",
    "Finding": "cbdp.audit.finding",
    "worst": "cbdp.audit.finding",
    "Published": "cbdp.audit.tables",
    "Table": "cbdp.audit.tables",
    "Noise": "cbdp.audit.tables",
    "Pair": "cbdp.audit.tables",
    "Sum": "cbdp.audit.tables",
    "from_release": "cbdp.audit.tables",
    "read": "cbdp.audit.described",
    "epsilon_lower_bound": "cbdp.audit.epsilon",
}

if TYPE_CHECKING:
    from cbdp.audit.described import read
    from cbdp.audit.epsilon import epsilon_lower_bound
    from cbdp.audit.finding import Finding, worst
    from cbdp.audit.page import build
    from cbdp.audit.run import Audit, audit
    from cbdp.audit.tables import Noise, Pair, Published, Sum, Table, from_release


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'cbdp.audit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


__all__ = [
    "Audit",
    "Finding",
    "Noise",
    "Pair",
    "Published",
    "Sum",
    "Table",
    "audit",
    "build",
    "epsilon_lower_bound",
    "from_release",
    "read",
    "worst",
]
