"""The public report of a release: one self-contained page, made of published values only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cbdp.features import SINGLETON, TOTAL
from cbdp.features.places import Stops
from cbdp.privacy.laws.geometric import Geometric
from cbdp.release.release import Release
from cbdp.report import text
from cbdp.report.charts import Chart, charts
from cbdp.report.markup import Html, join, page, table, tag
from cbdp.report.pictures import budget_picture, dag_picture, price
from cbdp.report.published import Published, publish
from cbdp.report.roles import Roles, roles
from cbdp.report.trust import CARE, EMPTY, NOISE, TRUST, Trust, in_words, judge

NARROW = 10  # columns of a matrix that leaves room beside it
SIGNS = {TRUST: ("✓", "good"), CARE: ("!", "fair"), NOISE: ("✕", "poor"), EMPTY: ("–", "none")}


def build(release: Release, *, places: Stops | None = None, manifest: Mapping[str, Any] | None = None) -> str:
    """The report of a release as HTML, which opens offline and asks nothing of any server.

    `places` gives the stops' coordinates for the map, `manifest` what is folded at its end; a release that carries
    its own needs neither. The same release gives the same page to the byte.
    """
    published = publish(release, places, manifest)
    parts, data = roles(published.dag), charts(published)
    title = "Published trips" if parts.ends else "Published counts"
    sections = [s for s in _sections(published, parts, data) if s is not None]
    body = join(
        _header(published, parts, data, title),
        _menu(sections),
        tag("main", [tag("section", tag("h2", name), inside, id=key) for key, name, inside in sections]),
        tag(
            "footer", tag("p", "Made by cbdp from published values only. Opening this page sends no request.")
        ),
    )
    return page(f"{title}: report", body, data)


Section = tuple[str, str, Html]


def _sections(published: Published, parts: Roles, data: Chart) -> list[Section | None]:
    return [
        ("protection", "What is protected, and how strongly", _protection(published)),
        _demand(published, data),
        _explore(parts, data),
        ("trust", "How far each table can be trusted", _trust(published)),
        ("budget", "Where the privacy budget went", _budget(published)),
        ("tables", "How the tables fit together", _tables(published)),
        _manifest(published),
        ("glossary", "Glossary", tag("dl", [[tag("dt", k), tag("dd", v)] for k, v in text.GLOSSARY.items()])),
    ]


def _header(published: Published, parts: Roles, data: Chart, title: str) -> Html:
    tiles = [
        tag("div", tag("span", head, class_="head"), tag("span", value, class_="value"), tag("span", about, class_="about"), class_="tile")
        for head, value, about in text.findings(published, data)
    ]  # fmt: skip
    sentence = f"{text.what(published, parts, data['total'])}. Published as {_how_many(published)}."
    return tag(
        "header",
        _simulation(published),
        tag("h1", title),
        tag("p", sentence, class_="lead"),
        tag("div", tiles, _strength(published), class_="tiles"),
    )


def _how_many(published: Published) -> str:
    many = len(text.tables(published))
    agree = "" if published.release.tables else " that add up to each other"
    return f"{many} table{'s' if many > 1 else ''}{agree}, protected by random noise"


def _simulation(published: Published) -> Html | None:
    if published.release.secure:
        return None
    return tag(
        "p", tag("strong", "Simulation, not a release. "), "Its noise came from a seeded source and can be computed by anybody: it protects nobody.",
        class_="warning", role="alert",
    )  # fmt: skip


def _strength(published: Published) -> Html:
    claim = published.release.claim
    value = f"ε = {price(claim.cost.epsilon)}" if claim.holds else "none"
    person = "person" if "person" in str(claim.unit) else "trip"
    about = f"for each {person}" + (
        f", δ = {float(claim.cost.delta):.2g}" if claim.cost.delta else ", without exceptions"
    )
    return tag(
        "div", tag("span", "Protection", class_="head"), tag("span", value, class_="value", id="epsilon"),
        tag("span", about if claim.holds else "see below", class_="about"), class_="tile",
    )  # fmt: skip


def _menu(sections: list[Section]) -> Html:
    return tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in sections], aria_label="Contents")


def _protection(published: Published) -> Html:
    claim = published.release.claim
    precise = join(
        tag("dt", "Guarantee"), tag("dd", str(claim)),
        tag("dt", "Neighbouring data sets"), tag("dd", f"differ by {claim.unit}"),
        tag("dt", "Sensitivity of a table"), tag("dd", f"{claim.unit.sensitivity} (sum of changes of its counts)"),
        tag("dt", "Mechanism"), tag("dd", published.release.mechanism),
        _noise_law(published),
    )  # fmt: skip
    return join(
        text.odds(published),
        text.unit(published) if claim.holds else None,
        tag(
            "details",
            tag("summary", "For reviewers: the exact statement"),
            tag("dl", precise, class_="facts"),
            open=True,
        ),
        tag("h3", "What was not protected"),
        tag(
            "p",
            "These are public inputs. They were given beforehand and would be the same for any other trips:",
        ),
        tag("ul", text.not_protected(published)),
    )


def _noise_law(published: Published) -> Html | None:
    measured = [m for m in published.release.measurements if m.scale is not None and len(m.values)]
    if not measured or any(m.law != Geometric.name for m in measured):
        return None
    law = "two-sided geometric (discrete Laplace) on whole numbers: P(z) ∝ exp(−|z|/scale)"
    return join(tag("dt", "Noise"), tag("dd", law))


def _demand(published: Published, data: Chart) -> Section | None:
    chart = data["demand"]
    if chart is None or len(chart["labels"]) < 2:
        return None
    name = "Demand over the day" if "day" in data["periods"][0] else "Demand by period"
    whiskers = _whiskers(published, chart, "Bars" if len(chart["series"]) == 1 else "Curves")
    hint = (
        " Choose a bar to see its flows below."
        if len(chart["series"]) == 1 and len(data["periods"]) > 1
        else ""
    )
    return "demand", name, join(
        tag("p", f"Trips in each period. {whiskers}{hint}", class_="note"),
        tag("div", class_="chart", id="chart-demand"),
        _numbers("demand"),
    )  # fmt: skip


def _whiskers(published: Published, chart: Chart, marks: str) -> str:
    if "low" not in chart["series"][0]:
        return "No intervals were published for these sums."
    sure = text.confident(published)
    if chart["exact"]:
        return f"{marks} show published counts, the thin lines {sure} intervals of the true ones."
    return f"{marks} show published counts, the thin lines ranges: added ends of a finer table’s {sure} intervals."


def _numbers(key: str) -> Html:
    return tag(
        "details", tag("summary", "Numbers as a table"), tag("div", class_="scroll"), id=f"numbers-{key}"
    )


def _explore(parts: Roles, data: Chart) -> Section | None:
    first = [*filter(None, [_matrix(data)]), *_shares(data)]
    narrow = data["matrix"] is None or len(data["matrix"]["columns"]) <= NARROW
    pieces = [
        tag("div", first, class_="beside" if narrow else None) if first else None,
        _map(data),
        _largest(data),
    ]
    if not any(pieces):
        return None
    name = "Who travels where, and how" if parts.ends else "A closer look"
    return "explore", name, join(_controls(data), pieces)


def _controls(data: Chart) -> Html | None:
    if len(data["periods"]) < 2:
        return None
    options = [tag("option", name, value=i) for i, name in enumerate(data["periods"])]
    return tag(
        "div", tag("label", "Show ", tag("select", options, id="period")),
        tag("button", "‹", type="button", id="earlier", aria_label="Earlier period"),
        tag("button", "›", type="button", id="later", aria_label="Later period"),
        class_="controls",
    )  # fmt: skip


def _matrix(data: Chart) -> Html | None:
    chart = data["matrix"]
    if chart is None:
        return None
    names = {"zones": "From zone to zone", "stops": "From stop to stop"}
    shown = [len(chart["rows"]), len(chart["columns"])]
    cut = (
        ""
        if shown == chart["of"]
        else f" The {shown[0]} rows and {shown[1]} columns with the most trips of {chart['of'][0]:,} and {chart['of'][1]:,}."
    )
    row, column = (chart[k].replace(".", " ") for k in ("row", "column"))
    said = f"Rows: {row}. Columns: {column}. The stronger the colour, the more trips.{cut}"
    return tag(
        "article", tag("h3", names.get(chart["kind"], f"By {row} and {column}")),
        tag("p", said, tag("span", class_="ranges", id="ranges-matrix"), class_="note"),
        tag("div", class_="chart scroll", id="chart-matrix"),
    )  # fmt: skip


def _map(data: Chart) -> Html | None:
    flows = data["flows"]
    if flows is None or not any(stop[2] is not None for stop in flows["stops"]):
        return None
    zones = [tag("option", zone[0], value=i) for i, zone in enumerate(flows["zones"]) if zone[1] is not None]
    many = [tag("option", n, value=n, selected=n == 20) for n in (10, 20, 50, 100)]
    level = [tag("option", "zones", value="zones"), tag("option", "stops", value="stops")]
    both = data["matrix"] is not None and data["matrix"]["kind"] == "zones"
    controls = [
        tag("label", "Flows between ", tag("select", level if both else level[1:], id="level")),
        tag("label", "Largest ", tag("select", many, id="many")),
        tag("label", "Zoom to ", tag("select", tag("option", "everything", value=-1), zones, id="zoom")) if len(zones) > 1 else None,
    ]  # fmt: skip
    hidden = f" {flows['hidden']:,} stops with the fewest trips are not drawn." if flows["hidden"] else ""
    return tag(
        "article", tag("h3", "Flows on the map"), tag("div", controls, class_="choices"),
        tag("p", f"Dots are stops, coloured by zone. Arrows have the colour of the zone they start in, their width is trips, and they bend to the right of their way. North is up.{hidden} ", tag("span", id="said-map"), class_="note"),
        tag("div", class_="chart", id="chart-map"),
    )  # fmt: skip


def _shares(data: Chart) -> list[Html]:
    return [
        tag(
            "article", tag("h3", f"Shares by {share['name']}"),
            tag("p", tag("span", class_="ranges", id=f"ranges-share-{i}"), class_="note"),
            tag("div", class_="chart", id=f"chart-share-{i}"),
        )
        for i, share in enumerate(data["shares"])
    ]  # fmt: skip


def _largest(data: Chart) -> Html | None:
    flows, types = data["flows"], data["types"]
    if flows is None and not (types and types["count"]):
        return None
    what = "flows" if flows else "counts"
    both = flows and data["matrix"] is not None and data["matrix"]["kind"] == "zones"
    levels = [tag("option", "zones", value="zones"), tag("option", "stops", value="stops")]
    choice = tag("label", "Between ", tag("select", levels, id="table-level")) if both else None
    return tag(
        "article", tag("h3", f"The largest {what}"),
        tag("div", choice, tag("label", "Find ", tag("input", type="search", id="find", autocomplete="off")), class_="choices"),
        tag("p", "Choose a column’s name to sort by it. ", tag("span", id="said-table"), class_="note"),
        tag("div", tag("table", id="largest", class_="sortable"), class_="scroll tall", tabindex=0, role="region", aria_label=f"The largest {what}"),
    )  # fmt: skip


def _trust(published: Published) -> Html:
    sure = text.confident(published)
    head = [
        "Table",
        "Verdict",
        "Counts",
        "Noise scale",
        f"Noise, {sure}",
        "Typical interval",
        "Beside its count",
        "Surely not zero",
    ]
    found = [judge(published, name) for name in text.tables(published)]
    said = [
        "The verdict on each table: ", tag("b", "trust"), " if a typical interval is at most ± 20 % of its count, ", tag("b", "use with care"),
        " up to ± 100 %, ", tag("b", "noise"), f" beyond. “Noise, {sure}” is how far the noise alone moves a count before tables are made ",
        "consistent, in trips; “surely not zero” is the share of counts whose interval excludes zero, and of trips in these.",
    ]  # fmt: skip
    measured = any(t.measured and t.relative is not None for t in found)
    note = (
        tag(
            "p",
            "* No intervals were published for this table: its figures are those of the noise alone.",
            class_="note",
        )
        if measured
        else None
    )
    rows = [_trust_row(t, published.confidence) for t in found]
    return join(tag("p", said), tag("div", table(head, rows, class_="cards"), class_="scroll"), note)


def _trust_row(t: Trust, confidence: float) -> list[Any]:
    sign, kind = SIGNS[t.verdict]
    star = "*" if t.measured and t.relative is not None else ""
    verdict = join(
        tag("span", tag("span", sign, aria_hidden="true"), f" {t.verdict}", class_=f"pill {kind}"),
        tag("span", in_words(t, confidence), class_="about"),
    )
    sure = "–" if t.sure is None else text.percent(t.sure)
    if t.sure is not None and t.sure_trips is not None and t.size > 1:
        sure = f"{sure} of counts\n{text.percent(t.sure_trips)} of trips"
    beside = (
        "–"
        if t.relative is None
        else f"± {text.percent(t.relative)}"
        if t.relative < 10
        else "over ± 1,000 %"
    )
    return [
        t.feature,
        verdict,
        f"{t.size:,}",
        "not measured" if t.scale is None else text.number(t.scale),
        "–" if t.noise is None else f"± {t.noise:,}",
        "–" if t.half is None else f"± {text.number(t.half)}{star}",
        beside + star,
        sure + (star if t.relative is not None else ""),
    ]


def _budget(published: Published) -> Html:
    claim, spends = published.release.claim, published.spends()
    said = f"The whole budget is ε = {price(claim.cost.epsilon)}."
    delta = f" δ in total: {float(claim.cost.delta):.2g}." if claim.cost.delta else ""
    return join(
        tag(
            "p",
            "Each table was asked for with a part of the budget. A larger part means less noise. ",
            said,
            delta,
        ),
        budget_picture({name: spend.epsilon for name, spend in spends.items()}, claim.cost.epsilon),
    )


def _tables(published: Published) -> Html:
    dag = published.dag
    ends = f"“{TOTAL}” is everything together, “{SINGLETON}” every trip type on its own ({dag.universe.size:,} of them)."
    picture = tag(
        "div",
        dag_picture(dag),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label="Picture of the tables",
    )
    said = tag(
        "div",
        tag("p", f"Each table adds up to those its arrows lead to. {ends}"),
        text.consistency(published),
    )
    return tag("div", picture, said, class_="beside")


def _manifest(published: Published) -> Section | None:
    if not published.manifest:
        return None
    shown = json.dumps(published.manifest, indent=2, ensure_ascii=False, default=str)
    inside = tag("details", tag("summary", "Show the manifest (JSON)"), tag("pre", shown, tabindex=0))
    said = tag(
        "p",
        "Everything a reviewer needs to check this release: settings, versions and hashes. The file manifest.json beside it also has the SHA-256 of every file.",
    )
    return "manifest", "Manifest", join(said, inside)
