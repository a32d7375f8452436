"""Pictures of a release for a notebook or a paper: each says what it shows, in which unit, how sure it is, and how it is protected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cbdp.release.published import CONFIDENCE, Published

if TYPE_CHECKING:  # a release makes its own plots
    from cbdp.release.release import Release


@dataclass(frozen=True, eq=False)
class Plots:
    """What a release can draw. Every plot returns matplotlib's axes, to be changed or saved; `ax` draws on axes that are there."""

    release: Release = field(repr=False)

    def day(self, by: str | None = None, ax: Any = None) -> Any:
        """Trips in each period, with intervals; with `by`, say "mode", a line for each of its values."""
        from cbdp.release.plots.day import day

        return day(self._published(), by, ax)

    def flows(self, most: int = 15, level: str | None = None, ax: Any = None) -> Any:
        """The largest flows with intervals, between zones or stops (`level`; zones where there are any)."""
        from cbdp.release.plots.flows import flows

        return flows(self._published(), most, level, ax)

    def map(self, most: int = 20, level: str | None = None, zoom: str | None = None, ax: Any = None) -> Any:
        """The largest flows on a map, between zones or stops (`level`; zones where there are any); `zoom` shows one zone."""
        from cbdp.release.plots.map import draw_map

        return draw_map(self._published(), most, level, zoom, ax)

    def _published(self) -> Published:
        release = self.release
        return Published(release, release.intervals, release.confidence or CONFIDENCE, release.places)
