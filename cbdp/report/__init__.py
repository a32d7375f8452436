"""The report of a release: one page that opens offline. The internal one, which shows the truth, is a module apart."""

from typing import TYPE_CHECKING, Any

from cbdp.report.build import build

if TYPE_CHECKING:
    from cbdp.report.internal import build_internal

__all__ = ["build", "build_internal"]


def __getattr__(name: str) -> Any:
    """What sees private counts is loaded only when it is asked for."""
    if name == "build_internal":
        from cbdp.report.internal import build_internal

        return build_internal
    raise AttributeError(f"module 'cbdp.report' has no attribute {name!r}")
