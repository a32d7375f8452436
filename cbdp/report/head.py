"""The head of the report: what this is, who publishes it, and the first numbers one asks for."""

from __future__ import annotations

import numpy as np

from cbdp.release.counted import counted
from cbdp.release.published import Published
from cbdp.release.release import Release
from cbdp.release.roles import Roles
from cbdp.release.words import besides, bounded, protected, strength, title_of, what, where_and_when
from cbdp.report.charts import Chart
from cbdp.report.markup import Html, tag
from cbdp.report.support import supported
from cbdp.report.text import confident, named, percent, spoken, tables

Tile = tuple[str, str, str]  # a heading, a number, and what it is

IMPRINT = {"publisher": "Publisher", "licence": "Licence", "contact": "Contact", "timezone": "Time zone"}


def header(published: Published, parts: Roles, data: Chart) -> Html:
    tiles = [
        tag("div", tag("span", head, class_="head"), tag("span", value, class_="value"), tag("span", about, class_="about"), class_="tile")
        for head, value, about in findings(published, data)
    ]  # fmt: skip
    sentence = f"{what(published.release, parts)}. Published as {_how_many(published)}."
    return tag(
        "header",
        _simulation(published.release),
        tag("h1", title_of(published.release, parts)),
        _where_and_when(published.release),
        tag("p", sentence, class_="lead"),
        tag("div", tiles, _strength(published.release), class_="tiles"),
        _imprint(published.release),
    )


def _simulation(release: Release) -> Html | None:
    if release.secure:
        return None
    return tag(
        "p", tag("strong", "Simulation, not a release. "),
        "Its noise came from a seed, so anybody can compute it and remove it: it protects nobody.",
        class_="warning", role="alert",
    )  # fmt: skip


def _where_and_when(release: Release) -> Html | None:
    known = where_and_when(release)
    return None if known is None else tag("p", known, class_="where")


def _imprint(release: Release) -> Html | None:
    said = {} if release.about is None else release.about.texts()
    lines = [
        tag("div", tag("dt", name), tag("dd", said[key])) for key, name in IMPRINT.items() if key in said
    ]
    return tag("dl", lines, class_="imprint") if lines else None


def _how_many(published: Published) -> str:
    many, release = len(tables(published)), published.release
    agree = "" if release.tables else " that add up to each other"
    noise = "protected by random noise" if release.promise.holds else "with random noise"
    return f"{many} table{'s' if many > 1 else ''}{agree}, {noise}"


def _strength(release: Release) -> Html:
    claim = release.promise
    about = "see below" if release.secure else "this is a simulation"
    if claim.holds:
        sure = besides(claim) if claim.cost.delta else f", without exception{besides(claim)}"
        about = f"for each {protected(claim.unit, counted(release.features.universe))}{sure}"
    return tag(
        "div", tag("span", "Protection", class_="head"), tag("span", strength(claim), class_="value", id="epsilon"),
        tag("span", about, class_="about"), class_="tile",
    )  # fmt: skip


def findings(published: Published, data: Chart) -> list[Tile]:
    """Tiles for a first look. What no measurement supports is left out; the number of trips is marked."""
    made = [_trips(published, data), _busiest(published, data), _largest_pair(published, data)]
    shares = [tile for share in data["shares"] if (tile := _most_common(published, share)) is not None]
    return [tile for tile in (*made, *shares[:1]) if tile is not None]


def _trips(published: Published, data: Chart) -> Tile:
    whole = published.grouped()
    said = "published"
    if published.release.recipe.public:
        said = "public, and met exactly"
    elif published.release.tables:
        said = "in the table with the fewest counts"
    elif data["total"] and not supported(published, (), 0, data["total"]):
        said = "a guess: no measurement tells how many"
    elif whole.low is not None and whole.high is not None and whole.exact:
        said = f"{confident(published)} interval {int(whole.low):,}–{int(whole.high):,}"
    noun = counted(published.dag.universe)
    only = bounded(published.release.claim.unit, noun)
    return (
        noun.say("Trips"),
        f"{data['total']:,}",
        f"{said}; {only}, so the true number may be higher" if only else said,
    )


def _busiest(published: Published, data: Chart) -> Tile | None:
    demand = data["demand"]
    if not demand or len(demand["labels"]) < 2 or len(demand["series"]) > 1 or not data["total"]:
        return None
    best = int(np.argmax(demand["series"][0]["count"]))
    if not supported(published, (demand["time"],), best, demand["series"][0]["count"][best]):
        return None
    said = _ranged(demand["series"][0], best, demand["exact"], published)
    return "Busiest period", demand["names"][best], said


def _largest_pair(published: Published, data: Chart) -> Tile | None:
    matrix = data["matrix"]
    if not matrix or matrix["kind"] == "other" or not data["total"]:
        return None
    best = int(np.argmax(matrix["cells"][0]["count"]))
    row, column = divmod(best, len(matrix["columns"]))
    kind = "zone" if matrix["kind"] == "zones" else "stop"
    pair = [
        named(published, matrix[k]).index(matrix[f"{k}s"][at]) for k, at in (("row", row), ("column", column))
    ]
    place = pair[0] * published.many(matrix["column"]) + pair[1]
    if not supported(published, (matrix["row"], matrix["column"]), place, matrix["cells"][0]["count"][best]):
        return None
    said = _ranged(matrix["cells"][0], best, matrix["exact"], published)
    return f"Largest {kind} pair", f"{matrix['rows'][row]} → {matrix['columns'][column]}", said


def _most_common(published: Published, share: Chart) -> Tile | None:
    bars, counts = share["bars"][0], share["bars"][0]["count"]
    if not sum(counts):
        return None
    best = int(np.argmax(counts))
    if not supported(published, (share["name"],), best, counts[best]):
        return None
    said = f"{percent(counts[best] / sum(counts))} of {counted(published.dag.universe).many}: {_ranged(bars, best, share['exact'], published)}"
    return (
        f"Most {counted(published.dag.universe).many}, by {spoken(share['name'])}",
        share["labels"][best],
        said,
    )


def _ranged(bars: Chart, place: int, exact: bool, published: Published) -> str:
    count = counted(published.dag.universe).number(bars["count"][place])
    if "low" not in bars:
        return count
    sure = f"{confident(published)} interval" if exact else "range"
    return f"{count} ({sure} {bars['low'][place]:,}–{bars['high'][place]:,})"
