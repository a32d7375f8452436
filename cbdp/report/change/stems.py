"""The clearest changes one below the other: a dot for the change, a line for its interval, and zero between more and fewer."""

from __future__ import annotations

from typing import Any

from cbdp.release.change import Compared
from cbdp.report.change.rows import ends_of, label_of, mark_of, numbers_of, signed, sure_of, tip_of
from cbdp.report.markup import Html, join, tag

MOST = 30
ROW, LETTER, WIDE, RIGHT, TOP = 24, 8.8, 520, 80, 26
LETTERS = 34  # of a label


def stems(made: Compared) -> Html | None:
    """At most 30 rows, by how little chance explains them."""
    if made.rows < 2:
        return None
    chance: Any = made.columns["chance"]
    order = sorted(range(made.rows), key=lambda row: (chance[row], row))[:MOST]
    shown: list[int] = [n for row in order for n in (numbers_of(made, row)[2], *(ends_of(made, row) or ()))]
    low, high = min(0, *shown), max(0, *shown)
    span = max(high - low, 1)
    left = round(24 + LETTER * min(LETTERS, max(len(label_of(made, row)) for row in order)))

    def at(value: float) -> float:
        return left + (value - low) / span * WIDE

    tall = TOP + ROW * len(order) + 8
    marks = [_stem(made, row, TOP + ROW * place + ROW / 2, left, at) for place, row in enumerate(order)]
    zero = tag("line", x1=f"{at(0):.1f}", x2=f"{at(0):.1f}", y1=TOP - 4, y2=tall - 8, class_="axis")
    names = [
        tag("text", text, x=f"{at(value):.1f}", y=14, text_anchor="middle", class_="muted")
        for text, value in _ticks(low, high)
    ]
    said = "The clearest changes, with their intervals"
    wide = left + WIDE + RIGHT
    picture = tag(
        "svg", zero, names, marks, viewBox=f"0 0 {wide} {tall}", width=wide, height=tall, role="img", aria_label=said, class_="picture"
    )  # fmt: skip
    note = made.noun.say(
        "Lines are intervals. Coloured: more than noise can explain, orange for more trips and blue for fewer. Grey: within noise."
    )
    return join(tag("p", note, class_="note"), tag("div", picture, class_="scroll", id="chart-stems"))


def _ticks(low: int, high: int) -> list[tuple[str, int]]:
    """The ends and zero, as far as they do not overlap."""
    span = max(high - low, 1)
    return [("0", 0), *((signed(end), end) for end in (low, high) if abs(end) > 0.12 * span)]


def _stem(made: Compared, row: int, y: float, left: int, at: Any) -> Html:
    change = numbers_of(made, row)[2]
    low, high = ends_of(made, row) or (change, change)
    mark = mark_of(change, sure_of(made, row))
    text = label_of(made, row)
    short = text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
    line = tag("line", x1=f"{at(low):.1f}", x2=f"{at(high):.1f}", y1=y, y2=y, class_=f"stem s-{mark}")
    dot = tag(
        "circle",
        cx=f"{at(change):.1f}",
        cy=y,
        r=5,
        class_=f"mark {mark}",
        data_tip=tip_of(made, row),
        tabindex=0,
    )
    label = tag("text", short, x=left - 12, y=y + 4, text_anchor="end")
    number = tag("text", signed(change), x=left + WIDE + 10, y=y + 4, class_="muted")
    return tag("g", line, dot, label, number)
