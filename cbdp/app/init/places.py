"""Taps that nothing links: a configuration that counts them by place and time instead of by trips."""

from __future__ import annotations

from cbdp.app.guessing import Guess
from cbdp.app.guessing.taps import ACTION, STOP
from cbdp.app.init.texts import EDIT, quoted


def place_roles(found: Guess) -> dict[str, str]:
    """The columns of taps under the names of the dimensions: location, and tap for tap-ons and tap-offs."""
    names = {STOP: "location", ACTION: "tap"}
    return {names.get(role, role): column for role, column in found.columns.items()}


def place_dimensions(found: Guess) -> str:
    """The dimension of places, and that of tap-ons and tap-offs where a column tells them."""
    taps = ', tap = ["on", "off"]' if ACTION in found.columns else ""
    said = f"{EDIT} tap lists all that its column may hold" if taps else "each row has one place, not two"
    return f'dimensions = {{ location = "stops"{taps} }}  # {said}'


def place_tables(found: Guess) -> str:
    """Tables by time, by place, and where there are zones by zone and time."""
    tap = ["tap"] if ACTION in found.columns else []
    tables = {"time": [*tap, "time"], "location": [*tap, "location"]}
    if found.stops.zone is not None or found.stops.located:
        tables["zone"] = [*tap, "location.zone", "time"]
    made = [
        f"[[feature]]\nname = {quoted(name)}\nby = [{', '.join(map(quoted, by))}]"
        for name, by in tables.items()
    ]
    return "\n\n".join(
        ["# The tables to publish, in addition to the total and the single counts by place and time.", *made]
    )
