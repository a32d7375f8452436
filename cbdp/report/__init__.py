"""The report of a release: one page that opens offline. Right of the wall."""

from cbdp.report.page import build

__all__ = ["build"]
