"""Who travels where, when and how: the places of the charts, and the words around them. The page's script draws them."""

from __future__ import annotations

from cbdp.release.periods import is_single_day
from cbdp.release.roles import Roles, counted_noun
from cbdp.release.views import Published
from cbdp.report.charts import Chart
from cbdp.report.markup import Html, join, tag
from cbdp.report.text import attribute_words, confidence_text, percent

Section = tuple[str, str, Html]  # key, heading, content

INTERVAL_ENDS_NOTE = (
    "The published count is the one to use if you need a single number; the interval says where the true count lies. The two are worked out in different "
    "ways, so a count may stand at one end of its interval. That is no mistake."
)
MAX_COLUMNS_NARROW = 10  # columns of a matrix that leaves room beside it


def demand_section(published: Published, data: Chart) -> Section | None:
    chart = data["demand"]
    if chart is None or len(chart["labels"]) < 2:
        return None
    bars = len(chart["series"]) == 1
    hint = f" Select a bar to see {_period_views_text(data)} below." if bars and _by_period(data) else ""
    return "demand", _heading(published, chart["of_day"]), join(
        tag("p", f"{counted_noun(published.dag.universe).say('Trips')} in each period. {_intervals_note(published, chart, bars)}{hint}", class_="note"),
        tag("div", class_="chart", id="chart-demand"),
        tag("details", tag("summary", "Numbers as a table"), tag("div", class_="scroll"), id="numbers-demand"),
    )  # fmt: skip


def _by_period(data: Chart) -> bool:
    """Whether anything below shows one period at a time."""
    matrix, flows = data["matrix"], data["flows"]
    panels = [
        *([] if matrix is None else [matrix["cells"]]),
        *([] if flows is None else [flows["flows"]]),
        *([] if data["dots"] is None else [data["dots"]["counts"]]),
        *(share["bars"] for share in data["shares"]),
    ]
    return len(data["periods"]) > 1 and any(len(each) > 1 for each in panels)


def _period_views_text(data: Chart) -> str:
    """What shows one period at a time."""
    if data["flows"] is not None:
        return "its flows"
    return "its map" if data["dots"] is not None else "its shares" if data["shares"] else "its counts"


def _heading(published: Published, of_day: bool) -> str:
    if not of_day:
        return "Demand by period"
    return "Demand over the day" if is_single_day(published.release) else "Demand by time of day"


def _intervals_note(published: Published, chart: Chart, bars: bool) -> str:
    if "low" not in chart["series"][0]:
        return "No intervals were published for these numbers."
    marks, lines = ("Bars", "thin lines") if bars else ("Curves", "shaded bands")
    sure = confidence_text(published)
    if chart["exact"]:
        return f"{marks} show the published counts. The {lines} are {sure} intervals: the true count lies inside with {sure} confidence."
    return f"{marks} show the published counts. The {lines} are ranges: the {sure} intervals of a more detailed table, added up."


def explore_sections(parts: Roles, data: Chart) -> Section | None:
    matrix, shares = [*filter(None, [_matrix_article(data)])], _share_articles(data)
    narrow = data["matrix"] is None or len(data["matrix"]["columns"]) <= MAX_COLUMNS_NARROW
    every = data["matrix"] is not None and data["matrix"]["timed"]  # it shows all periods at once
    first = shares if every else [*matrix, *shares]
    pieces = [
        tag("div", first, class_="beside" if narrow else None) if first else None,
        _map_article(data),
        _dots_article(data),
        _largest_article(data),
    ]
    if not any([*pieces, *matrix]):
        return None
    name = "Who travels where, and how" if parts.ends else "A closer look"
    return "explore", name, join(matrix if every else None, _controls(data), pieces)


def _controls(data: Chart) -> Html | None:
    if not _by_period(data):
        return None
    options = [tag("option", name, value=i) for i, name in enumerate(data["periods"])]
    return tag(
        "div", tag("label", "Show ", tag("select", options, id="period")),
        tag("button", "‹", type="button", id="earlier", aria_label="Earlier period"),
        tag("button", "›", type="button", id="later", aria_label="Later period"),
        class_="controls",
    )  # fmt: skip


def _matrix_article(data: Chart) -> Html | None:
    chart = data["matrix"]
    if chart is None:
        return None
    names = {"zones": "From zone to zone", "stops": "From stop to stop"}
    shown, every = [len(chart["rows"]), len(chart["columns"])], chart["of"]
    first = ", the largest first" if chart["kind"] == "other" and shown[0] < every[0] else ""
    cut = (
        ""
        if shown == every
        else f" Shown are {_largest_of(shown[0], every[0], 'rows')} and {_largest_of(shown[1], every[1], 'columns')}: those with the most {data['noun'][1]}{first}."
    )
    row, column = (attribute_words(chart[k]) for k in ("row", "column"))
    note = f"Rows: {row}. Columns: {column}. The stronger the colour, the more {data['noun'][1]}.{cut}"
    return tag(
        "article", tag("h3", names.get(chart["kind"], f"By {row} and {column}")),
        tag("p", note, tag("span", class_="ranges", id="ranges-matrix"), class_="note"),
        tag("div", class_="chart scroll", id="chart-matrix"),
    )  # fmt: skip


def _largest_of(shown: int, every: int, what: str) -> str:
    return f"all {every:,} {what}" if shown == every else f"{shown:,} of {every:,} {what}"


def _map_article(data: Chart) -> Html | None:
    flows = data["flows"]
    if flows is None or not any(stop[2] is not None for stop in flows["stops"]):
        return None
    zones = [
        tag("option", flows["called"][i], value=i)
        for i, zone in enumerate(flows["zones"])
        if zone[1] is not None
    ]
    many = [tag("option", n, value=n, selected=n == 20) for n in (10, 20, 50, 100)]
    both = data["matrix"] is not None and data["matrix"]["kind"] == "zones"
    wide = [tag("option", "most trips" if flows["outside"] else "everything", value=-1)]
    wide += [tag("option", "all stops", value=-2)] if flows["outside"] else []
    controls = [
        tag("label", "Flows between ", tag("select", _level_options() if both else _level_options()[1:], id="level")),
        tag("label", "Largest ", tag("select", many, id="many")),
        tag("label", "Zoom to ", tag("select", wide, zones if len(zones) > 1 else None, id="zoom")) if len(zones) > 1 or len(wide) > 1 else None,
    ]  # fmt: skip
    hidden = f" The {flows['hidden']:,} stops with the fewest trips are not drawn." if flows["hidden"] else ""
    hidden += _outside_note(flows)
    note = (
        f"Dots are stops, coloured by zone. An arrow has the colour of the zone where it starts; the wider it is, the more {data['noun'][1]} "
        f"it stands for. Arrows curve to the right of their direction of travel. North is at the top.{hidden} "
    )
    return tag(
        "article", tag("h3", "Flows on the map"), tag("div", controls, class_="choices"),
        tag("p", note, tag("span", id="said-map"), class_="note"),
        tag("div", class_="chart", id="chart-map"),
    )  # fmt: skip


def _dots_article(data: Chart) -> Html | None:
    chart, many = data["dots"], data["noun"][1]
    if chart is None:
        return None
    far = ""
    if chart["outside"]:
        stops = "1 stop lies" if chart["outside"] == 1 else f"{chart['outside']:,} stops lie"
        far = f" {stops} far away, outside this map ({percent(chart['outside_share'])} of all {many})."
    zoned = ", coloured by zone" if 1 < len(chart["zones"]) <= 40 else ""
    note = f"Dots are stops{zoned}: the larger a dot, the more {many}. North is at the top.{far}"
    return tag(
        "article", tag("h3", f"{many[0].upper()}{many[1:]} on the map"), _dots_zoom(chart),
        tag("p", note, tag("span", id="said-dots"), class_="note"),
        tag("div", class_="chart", id="chart-dots"),
    )  # fmt: skip


def _dots_zoom(chart: Chart) -> Html | None:
    used_zones = {stop[3] for stop in chart["stops"]}
    zones = [tag("option", zone, value=i) for i, zone in enumerate(chart["called"]) if i in used_zones]
    if len(zones) < 2:
        return None
    options = [tag("option", "everything", value=-1), *zones]
    return tag("div", tag("label", "Zoom to ", tag("select", options, id="dots-zoom")), class_="choices")


def _outside_note(flows: Chart) -> str:
    """Stops that the frame of the map leaves out."""
    many = flows["outside"]
    if not many:
        return ""
    stops = "1 stop lies" if many == 1 else f"{many:,} stops lie"
    share = percent(flows["outside_share"])
    return f" {stops} far from most trips, outside this map ({share} of all starts and ends of trips): zoom to all stops to see {'it' if many == 1 else 'them'}."


def _level_options() -> list[Html]:
    return [tag("option", level, value=level) for level in ("zones", "stops")]


def _share_articles(data: Chart) -> list[Html]:
    return [
        tag(
            "article", tag("h3", f"Shares by {attribute_words(share['name'])}"),
            _posterior_note(share),
            tag("p", tag("span", class_="ranges", id=f"ranges-share-{i}"), class_="note"),
            tag("div", class_="chart", id=f"chart-share-{i}"),
        )
        for i, share in enumerate(data["shares"])
    ]  # fmt: skip


def _posterior_note(share: Chart) -> Html | None:
    if not share["guess"]:
        return None
    warning = f"No table was measured that tells counts by {attribute_words(share['name'])}: they are added up from single counts with much noise, and may be far off."
    return tag("p", warning, class_="note warning")


def _largest_article(data: Chart) -> Html | None:
    flows, types = data["flows"], data["types"]
    if flows is None and not (types and types["count"]):
        return None
    what = "flows" if flows else "counts"
    has_intervals = "low" in (flows or types) or (
        data["matrix"] is not None and "low" in data["matrix"]["cells"][0]
    )
    both = flows and data["matrix"] is not None and data["matrix"]["kind"] == "zones"
    choice = tag("label", "Between ", tag("select", _level_options(), id="table-level")) if both else None
    return tag(
        "article", tag("h3", f"The largest {what}"),
        tag("div", choice, tag("label", "Find ", tag("input", type="search", id="find", autocomplete="off")), class_="choices"),
        tag("p", "Select a column heading to sort by it. ", tag("span", id="said-table"), class_="note"),
        tag("p", INTERVAL_ENDS_NOTE, class_="note", id="said-ends") if has_intervals else None,
        tag("div", tag("table", id="largest", class_="sortable"), class_="scroll tall", tabindex=0, role="region", aria_label=f"The largest {what}"),
    )  # fmt: skip
