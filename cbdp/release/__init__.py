"""What is published: the release, its recipe, its manifest and files, and the formats of others. Right of the wall."""

from typing import TYPE_CHECKING

from cbdp.lazy import lazily

if TYPE_CHECKING:
    from cbdp.release.about import About, Dates
    from cbdp.release.files import load
    from cbdp.release.release import Release

__getattr__, __dir__ = lazily(
    __name__,
    {
        "About": "cbdp.release.about",
        "Dates": "cbdp.release.about",
        "Release": "cbdp.release.release",
        "load": "cbdp.release.files",
    },
)

__all__ = ["About", "Dates", "Release", "load"]
