"""The report of a release: one page that opens offline. Right of the wall."""

from cbdp.report.build import build

__all__ = ["build"]
