"""Attack a release before others do: ours, or any folder of count tables that a small file describes.

These are the attacks, which see published data only; `cbdp.audit_release` runs all that apply. Names are loaded when first
used, so that nobody pays for an audit who makes none.
"""

from typing import TYPE_CHECKING

from cbdp.lazy import lazily

if TYPE_CHECKING:
    from cbdp.audit.described import read
    from cbdp.audit.finding import Finding, worst
    from cbdp.audit.page import build
    from cbdp.audit.released import from_release
    from cbdp.audit.result import Audit
    from cbdp.audit.tables import CountTable, Pair, PublishedTables, Sum

__getattr__, __dir__ = lazily(
    __name__,
    {
        "Audit": "cbdp.audit.result",
        "build": "cbdp.audit.page",
        "CountTable": "cbdp.audit.tables",
        "Finding": "cbdp.audit.finding",
        "from_release": "cbdp.audit.released",
        "Pair": "cbdp.audit.tables",
        "PublishedTables": "cbdp.audit.tables",
        "read": "cbdp.audit.described",
        "Sum": "cbdp.audit.tables",
        "worst": "cbdp.audit.finding",
    },
)

__all__ = [
    "Audit",
    "CountTable",
    "Finding",
    "Pair",
    "PublishedTables",
    "Sum",
    "build",
    "from_release",
    "read",
    "worst",
]
