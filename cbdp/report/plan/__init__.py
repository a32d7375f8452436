"""The page of `cbdp plan`: choose ε, shares, periods and zones, and see what tables would tell and what somebody could find out."""

from cbdp.report.plan.build import build

__all__ = ["build"]
