"""`cbdp plan`: a page to decide with."""

from cbdp.app.planning.facts import facts

__all__ = ["facts"]
