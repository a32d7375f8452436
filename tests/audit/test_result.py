"""An audit as a value."""

from __future__ import annotations

from cbdp.audit import Audit, Finding


def test_an_audit_is_its_gravest_finding() -> None:
    """A contradiction outweighs weaknesses, these what is clear; nothing at all is clear."""
    clear, weak, bad = (Finding("c", v, "t", "e", power="p") for v in ("clear", "weakness", "contradicts"))
    assert Audit("x", ()).verdict == "clear"
    assert Audit("x", (clear, weak)).verdict == "weakness"
    assert Audit("x", (clear, weak, bad)).verdict == "contradicts"
