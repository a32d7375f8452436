"""The page: what changed in words, on a map, by group, and in a table; made of published values only."""

from __future__ import annotations

from cbdp.features.places import Stops
from cbdp.release.change import Compared
from cbdp.report.change.maps import change_map
from cbdp.report.change.multiples import multiples
from cbdp.report.change.rows import ends_of, label_of, mark_of, percent_of, range_of, rows_table, signed, told
from cbdp.report.change.stems import stems
from cbdp.report.markup import Html, join, page, tag

NAMED = 5  # rows that the head names


def build(made: Compared, places: Stops | None = None, whole: Compared | None = None) -> str:
    """The comparison as HTML, which opens offline and asks nothing of any server.

    `places` gives coordinates for the map; `whole` is the same comparison of all trips together, for the head.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> mechanism = cbdp.ConstraintBased(features, epsilon=1)
    >>> may, june = (mechanism.simulate({"stop": ["A"] * n, "time": ["am"] * n}, seed=n) for n in (300, 900))
    >>> build(cbdp.compare(may, june, by="time")).startswith("<!doctype html>")
    True
    """
    sections = [
        ("map", "Where it changed", change_map(made, places)),
        ("multiples", "Change by group", multiples(made)),
        ("stems", "The clearest changes", stems(made)),
        ("all", "Every row", rows_table(made)),
        ("method", "How to read this", _method(made)),
    ]
    shown = [(key, name, inside) for key, name, inside in sections if inside is not None]
    body = join(
        _head(made, whole),
        tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in shown], aria_label="Contents"),
        tag("main", [tag("section", tag("h2", name), inside, id=key) for key, name, inside in shown]),
        tag(
            "footer", tag("p", "Made by cbdp from published values only. Opening this page sends no request.")
        ),
    )
    return page(f"Change from {made.names[0]} to {made.names[1]}", body, {}, "cbdp.report.change")


def _head(made: Compared, whole: Compared | None) -> Html:
    lead = [tag("p", sentence.replace(" %", "\u00a0%"), class_="lead") for sentence in made.headline]
    notes = [tag("p", note, class_="note") for note in made.notes]
    return tag(
        "header",
        tag("p", f"{made.names[0]} → {made.names[1]}", class_="where"),
        tag("h1", made.noun.say("How trips changed")),
        lead,
        _named(made),
        _tiles(made, whole),
        notes,
    )


def _named(made: Compared) -> Html | None:
    found = made.standing_out()[:NAMED] if made.by else []
    return (
        tag("ul", [tag("li", f"{label_of(made, row)}: {told(made, row)}") for row in found])
        if found
        else None
    )


def _tiles(made: Compared, whole: Compared | None) -> Html:
    first, second = (int(made.columns[side].sum()) for side in ("first", "second"))  # type: ignore[union-attr]
    tiles = [
        (made.noun.say("Published trips before"), f"{first:,}", made.names[0]),
        (made.noun.say("Published trips after"), f"{second:,}", made.names[1]),
        (
            "Change",
            signed(second - first),
            f"{percent_of(first, second)}{_certain(made if made.rows == 1 else whole)}",
        ),
        (
            "Rows that stand out",
            f"{len(made.standing_out()):,}",
            f"of {made.rows:,}, after the correction for many rows",
        ),
    ]
    return tag("div", [_tile(*tile) for tile in tiles], class_="tiles")


def _certain(whole: Compared | None) -> str:
    if whole is None or whole.rows != 1:
        return ""
    if ends_of(whole, 0) is None:
        return "; no interval: no measured table adds up to it"
    return f"; {100 * whole.confidence:g} % interval {range_of(whole, 0)}"


def _tile(head: str, value: str, about: str) -> Html:
    return tag(
        "div",
        tag("span", head, class_="head"),
        tag("span", value, class_="value"),
        tag("span", about, class_="about"),
        class_="tile",
    )


def _method(made: Compared) -> Html:
    percent = f"{100 * made.confidence:g} %"
    return join(
        tag(
            "p",
            "Both releases carry random noise that protects people. So two releases differ even where nothing changed. ",
            f"The interval of a change holds the true change with {percent} confidence, each row on its own.",
        ),
        tag(
            "p",
            "“More than noise can explain”: the interval leaves zero out, and it still does so after the Benjamini–Hochberg "
            "correction for looking at many rows at once. “Could be chance among so many rows”: on its own the row looks changed, but "
            "so would some rows without any change. “Within noise”: no change can be told from none, which does not prove that there is none. "
            "“Cannot tell”: no measured table adds up to the row, so it has no interval.",
        ),
        tag(
            "p",
            "Verdicts are about noise only. Whether a change comes from the season, a holiday, or a new timetable, numbers alone do not say.",
        ),
        tag("p", _legend(made)),
    )


def _legend(made: Compared) -> Html:
    say = made.noun.say
    marks = ((1, True, say("more trips")), (-1, True, say("fewer trips")), (1, False, "within noise"))
    return tag(
        "ul",
        [
            tag(
                "li",
                tag(
                    "svg",
                    tag("rect", width=12, height=12, rx=3, class_=mark_of(sign, sure)),
                    width=12,
                    height=12,
                ),
                text,
            )
            for sign, sure, text in marks
        ],
        class_="legend",
    )
