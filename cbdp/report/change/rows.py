"""Rows of a comparison in words, and the table of all of them."""

from __future__ import annotations

import math
from typing import Any

from cbdp.release.change import CHANCE, CHANGED, NOISE, Compared
from cbdp.report.markup import Html, join, tag

MOST = 3_000  # rows listed on a page
PILLS = {CHANGED: "good", CHANCE: "fair", NOISE: "none"}
HEADS = ("Before", "After", "Change", "Interval", "Ratio", "Verdict")


def label_of(made: Compared, row: int, by: tuple[str, ...] | None = None) -> str:
    """The labels of a row."""
    names = made.by if by is None else by
    arrow = len(names) == 2 and names[0].startswith("origin") and names[1].startswith("destination")
    return (" → " if arrow else ", ").join(
        str(made.columns[name][row]) for name in names
    ) or f"all {made.noun.many}"


def signed(value: int) -> str:
    """A change with its sign.

    >>> signed(1200), signed(-3), signed(0)
    ('+1,200', '−3', '0')
    """
    return f"{value:+,}".replace("-", "−") if value else "0"


def percent_of(first: int, second: int) -> str:
    """A change in percent of what was before."""
    if first <= 0:
        return "none before"
    change = 100 * (second - first) / first
    return f"{change:+.1f} %".replace("-", "−") if abs(change) < 1000 else f"{second / first:.3g} times"


def mark_of(sign: float, sure: bool) -> str:
    """The colour class of a change."""
    return ("up" if sign > 0 else "down") if sure else "quiet"


def numbers_of(made: Compared, row: int) -> tuple[int, int, int]:
    """Before, after and change."""
    first, second, change = (int(made.columns[n][row]) for n in ("first", "second", "change"))  # type: ignore[arg-type]
    return first, second, change


def ends_of(made: Compared, row: int) -> tuple[int, int] | None:
    """Both ends of the change's interval, where it has one."""
    low, high = (float(made.columns[n][row]) for n in ("low", "high"))  # type: ignore[arg-type]
    return None if math.isnan(low) else (int(low), int(high))


def range_of(made: Compared, row: int) -> str:
    """The interval in words."""
    ends = ends_of(made, row)
    return "no interval" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"


def sure_of(made: Compared, row: int) -> bool:
    """Whether a row stands out."""
    return bool(made.columns["verdict"][row] == CHANGED)


def told(made: Compared, row: int) -> str:
    """A row's change in words."""
    first, second, change = numbers_of(made, row)
    return f"{first:,} → {second:,}, {signed(change)} ({percent_of(first, second)}; {range_of(made, row)})"


def tip_of(made: Compared, row: int) -> str:
    """What stands at a mark."""
    return f"{label_of(made, row)}\n{told(made, row)}\n{made.columns['verdict'][row]}"


def rows_table(made: Compared) -> Html:
    """Every row, those that stand out first; a page lists so many, and says where the others are."""
    order = _order(made)
    names = [*(made.by or ("",)), *HEADS]
    head = tag(
        "thead", tag("tr", [tag("th", tag("button", name, type="button"), scope="col") for name in names])
    )
    body = [_row(made, row) for row in order[:MOST]]
    more = (
        f" The page lists {MOST:,} of {made.rows:,}; cbdp compare --format csv has all."
        if made.rows > MOST
        else ""
    )
    controls = tag(
        "div",
        tag("label", "Find ", tag("input", id="find", type="search")),
        tag("label", tag("input", id="only", type="checkbox"), " only rows that stand out"),
        tag("span", "", id="shown", class_="muted"),
        class_="choices",
    )
    return join(
        controls,
        tag("p", more, class_="note") if more else None,
        tag(
            "div",
            tag("table", head, tag("tbody", body), id="rows", class_="rows sortable"),
            class_="tall scroll",
            tabindex=0,
        ),
    )


def _order(made: Compared) -> list[int]:
    first = made.standing_out()
    chance: Any = made.columns["chance"]
    return [*first, *sorted(set(range(made.rows)) - set(first), key=lambda row: (chance[row], row))]


def _row(made: Compared, row: int) -> Html:
    first, second, change = numbers_of(made, row)
    ends = ends_of(made, row)
    verdict, ratio = str(made.columns["verdict"][row]), float(made.columns["ratio"][row])  # type: ignore[arg-type]
    labels = [str(made.columns[name][row]) for name in made.by] or [f"all {made.noun.many}"]
    shown = "–" if math.isnan(ratio) else f"{ratio:.3g}"
    cells = [
        tag("th", labels[0], scope="row"),
        [tag("td", label) for label in labels[1:]],
        _cell(f"{first:,}", first),
        _cell(f"{second:,}", second),
        _cell(signed(change), change),
        _cell("–" if ends is None else range_of(made, row), -1 if ends is None else ends[1] - ends[0]),
        _cell(shown, -1 if math.isnan(ratio) else round(ratio, 6)),
        tag("td", tag("span", verdict, class_=f"pill {PILLS.get(verdict, 'none')}")),
    ]
    return tag("tr", cells, data_out=int(verdict == CHANGED))


def _cell(text: str, value: float) -> Html:
    return tag("td", text, class_="number", data_value=value)
