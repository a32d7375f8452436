"""Parts that a configuration chooses must be there before anything is spent."""

from __future__ import annotations

from typing import Any

from cbdp.parts import Parts


def check_chosen(parts: Parts[Any], name: str) -> None:
    """Whether the part can be loaded, and what it needs is installed."""
    part = parts.get(name)
    if hasattr(part, "installed") and not part.installed():
        raise parts.error(f"the {parts.kind} {name!r} is not installed: {part.install}")
