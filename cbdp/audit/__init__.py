"""Attack a release before others do: ours, or any folder of count tables that a small file describes.

Names are loaded when first used, so that nobody pays for an audit who makes none.
"""

from typing import TYPE_CHECKING

from cbdp.lazy import lazily

if TYPE_CHECKING:
    from cbdp.audit.described import read
    from cbdp.audit.finding import Finding, worst
    from cbdp.audit.page import build
    from cbdp.audit.result import Audit
    from cbdp.audit.tables import Noise, Pair, Published, Sum, Table, from_release

__getattr__, __dir__ = lazily(
    __name__,
    {
        "Audit": "cbdp.audit.result",
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
    },
)

__all__ = [
    "Audit",
    "Finding",
    "Noise",
    "Pair",
    "Published",
    "Sum",
    "Table",
    "build",
    "from_release",
    "read",
    "worst",
]
