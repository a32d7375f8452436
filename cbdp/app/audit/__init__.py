"""Audits from end to end: the attacks of `cbdp.audit`, and those that need the trips, a mechanism or a configuration."""

from typing import TYPE_CHECKING

from cbdp.lazy import lazily

if TYPE_CHECKING:
    from cbdp.app.audit.lower_bound import epsilon_lower_bound, rho_lower_bound
    from cbdp.app.audit.run import audit_release
    from cbdp.audit.findings import Audit

__getattr__, __dir__ = lazily(
    __name__,
    {
        "Audit": "cbdp.audit.findings",
        "audit_release": "cbdp.app.audit.run",
        "epsilon_lower_bound": "cbdp.app.audit.lower_bound",
        "rho_lower_bound": "cbdp.app.audit.lower_bound",
    },
)

__all__ = ["Audit", "audit_release", "epsilon_lower_bound", "rho_lower_bound"]
