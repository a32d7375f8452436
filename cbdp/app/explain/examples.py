"""A table's counts in words that a reader has for them, and a sentence that says how one would be published."""

from __future__ import annotations

from collections.abc import Sequence

from cbdp.app.explain.expected import ExpectedTable

PLACES = ("origin", "destination")
NAMES = {"tap": "kind of tap"}
WHEN = {"time": ("a time period", " in one time period"), "day": ("a day", " on one day")}


def what_of(by: Sequence[str]) -> str:
    """What one count of a table is of, by the attributes that it groups by.

    >>> what_of(["origin.zone", "destination.zone", "time"]), what_of(["mode", "time"]), what_of(["day", "time"])
    ('a pair of zones in one time period', 'one mode in one time period', 'a day in one time period')
    >>> what_of(["origin", "destination"]), what_of(["origin.zone"]), what_of([])
    ('a pair of stops', 'one origin zone', 'all trips')
    """
    left, said = list(by), []
    for attribute in [a.removeprefix(PLACES[0]) for a in by if a.split(".")[0] == PLACES[0]]:
        pair = [f"{place}{attribute}" for place in PLACES]
        if set(pair) <= set(left):
            left = [name for name in left if name not in pair]
            said.append(f"a pair of {attribute.removeprefix('.') or 'stop'}s")
    said += [f"one {NAMES.get(name, name.replace('.', ' '))}" for name in left if name not in WHEN]
    when = [name for name in left if name in WHEN]
    if not said and when:
        said.append(WHEN[when.pop(0)][0])
    return ", ".join(said) + "".join(WHEN[name][1] for name in when) or "all trips"


def example(by: Sequence[str], expected: ExpectedTable) -> str:
    """How a typical count would be published.

    >>> from cbdp.app.explain.expected import use_of
    >>> example(["mode"], ExpectedTable("mode", 8.0, 200.0, 13, use_of(0.1)))
    'One mode with 200 trips would be published as 187–213.'
    """
    what = what_of(by)
    trips = f"{expected.count:,.0f} trip" + ("" if expected.count == 1 else "s")
    subject = f"{what[0].upper()}{what[1:]} with {trips}" if by else f"A total of {trips}"
    return f"{subject} would be published as {range_text(expected)}."


def range_text(expected: ExpectedTable) -> str:
    """From the least to the most, or the count alone where there is no noise to speak of."""
    if not expected.half:
        return f"{expected.count:,.0f}"
    return f"{expected.low:,}–{expected.high:,}"
