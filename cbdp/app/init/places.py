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
    action = found.columns.get(ACTION)
    if action is None:
        return 'dimensions = { location = "stops" }  # each row has one place, not two'
    said = f'all that column {action!r} may hold; if your file has tap-ons only, write tap = ["on"]'
    return f'dimensions = {{ location = "stops", tap = ["on", "off"] }}  # {EDIT} {said}'


def place_tables(found: Guess) -> str:
    """Tables by time (or day), by place, and where there are zones by zone and time."""
    tap = ["tap"] if ACTION in found.columns else []
    when = "day" if found.daily else "time"
    tables = {when: [*tap, when], "location": [*tap, "location"]}
    if found.stops.zone is not None or found.stops.located:
        tables["zone"] = [*tap, "location.zone", when]
    made = [
        f"[[feature]]\nname = {quoted(name)}\nby = [{', '.join(map(quoted, by))}]"
        for name, by in tables.items()
    ]
    return "\n\n".join(
        [
            f"# The tables to publish, in addition to the total and the single counts by place and {when}.",
            *made,
        ]
    )
