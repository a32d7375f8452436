"""Attack a release before others do: ours, or any folder of count tables that a small file describes.

These are the attacks, which see published data only; `cbdp.audit_release` runs all that apply. Names are loaded when first
used, so that nobody pays for an audit who makes none.
"""

from typing import TYPE_CHECKING

from cbdp.lazy import lazily

if TYPE_CHECKING:
    from cbdp.audit.external_tables import read
    from cbdp.audit.findings import Audit, Finding, build, worst
    from cbdp.audit.tables import CountTable, Pair, PublishedTables, Sum, from_release

__getattr__, __dir__ = lazily(
    __name__,
    {
        "Audit": "cbdp.audit.findings",
        "build": "cbdp.audit.findings",
        "CountTable": "cbdp.audit.tables",
        "Finding": "cbdp.audit.findings",
        "from_release": "cbdp.audit.tables",
        "Pair": "cbdp.audit.tables",
        "PublishedTables": "cbdp.audit.tables",
        "read": "cbdp.audit.external_tables",
        "Sum": "cbdp.audit.tables",
        "worst": "cbdp.audit.findings",
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
