"""Who travels where, when and how: the words around the charts, and what can be chosen. The page's script draws them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cbdp.numbers import confidence_text, percent
from cbdp.release.roles import Roles, counted_noun, is_single_day
from cbdp.release.views import Published
from cbdp.report.charts import Chart
from cbdp.report.reliability import attribute_words

MAX_COLUMNS_NARROW = 10  # columns of a matrix that leaves room beside it
Options = dict[int, str]  # what may be chosen: values, and how they are called


@dataclass(frozen=True)
class Panel:
    """A chart's heading, what is to be known about it, and what warns of it."""

    heading: str
    note: str = ""
    warning: str | None = None


@dataclass(frozen=True)
class MapPanel:
    """What a map may be zoomed to, what is not on it, and whether zones have colours."""

    zoom: Options
    missing: str
    zoned: bool = True


@dataclass(frozen=True)
class Explore:
    """The charts of a section, as far as the release has them.

    `all_periods`: the matrix shows all of them at once; `narrow`: it leaves room beside it; `largest` is what the table lists.
    """

    heading: str
    periods: Options
    matrix: Panel | None
    all_periods: bool
    narrow: bool
    shares: list[Panel]
    map: MapPanel | None
    dots: MapPanel | None
    zone_pairs: bool
    largest: str | None
    has_intervals: bool


def demand_panel(published: Published, data: Chart) -> Panel | None:
    chart = data["demand"]
    if chart is None or len(chart["labels"]) < 2:
        return None
    bars = len(chart["series"]) == 1
    hint = f" Select a bar to see {_period_views_text(data)} below." if bars and _by_period(data) else ""
    heading = "Demand by period"
    if chart["of_day"]:
        heading = "Demand over the day" if is_single_day(published.release) else "Demand by time of day"
    trips = counted_noun(published.dag.universe).say("Trips")
    return Panel(heading, f"{trips} in each period. {_intervals_note(published, chart, bars)}{hint}")


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


def _intervals_note(published: Published, chart: Chart, bars: bool) -> str:
    if "low" not in chart["series"][0]:
        return "No intervals were published for these numbers."
    marks, lines = ("Bars", "thin lines") if bars else ("Curves", "shaded bands")
    sure = confidence_text(published.confidence)
    if chart["exact"]:
        return f"{marks} show the published counts. The {lines} are {sure} intervals: the true count lies inside with {sure} confidence."
    return f"{marks} show the published counts. The {lines} are ranges: the {sure} intervals of a more detailed table, added up."


def explore_panels(parts: Roles, data: Chart) -> Explore | None:
    matrix, flows, types = data["matrix"], data["flows"], data["types"]
    shown = Explore(
        "Who travels where, and how" if parts.ends else "A closer look",
        dict(enumerate(data["periods"])) if _by_period(data) else {},
        None if matrix is None else _matrix_panel(data),
        matrix is not None and matrix["timed"],
        matrix is None or len(matrix["columns"]) <= MAX_COLUMNS_NARROW,
        [_share_panel(share) for share in data["shares"]],
        None if flows is None or not any(stop[2] is not None for stop in flows["stops"]) else _map_panel(flows),
        None if data["dots"] is None else _dots_panel(data),
        matrix is not None and matrix["kind"] == "zones",
        "flows" if flows is not None else "counts" if types and types["count"] else None,
        "low" in (flows or types or ()) or (matrix is not None and "low" in matrix["cells"][0]),
    )  # fmt: skip
    panels = (shown.matrix, shown.shares, shown.map, shown.dots, shown.largest)
    return shown if any(panels) else None


def _matrix_panel(data: Chart) -> Panel:
    chart, many = data["matrix"], data["noun"][1]
    names = {"zones": "From zone to zone", "stops": "From stop to stop"}
    shown, every = [len(chart["rows"]), len(chart["columns"])], chart["of"]
    first = ", the largest first" if chart["kind"] == "other" and shown[0] < every[0] else ""
    cut = (
        ""
        if shown == every
        else f" Shown are {_largest_of(shown[0], every[0], 'rows')} and {_largest_of(shown[1], every[1], 'columns')}: those with the most {many}{first}."
    )
    row, column = (attribute_words(chart[k]) for k in ("row", "column"))
    note = f"Rows: {row}. Columns: {column}. The stronger the colour, the more {many}.{cut}"
    return Panel(names.get(chart["kind"], f"By {row} and {column}"), note)


def _largest_of(shown: int, every: int, what: str) -> str:
    return f"all {every:,} {what}" if shown == every else f"{shown:,} of {every:,} {what}"


def _share_panel(share: Chart) -> Panel:
    name = attribute_words(share["name"])
    warning = f"No table was measured that tells counts by {name}: they are added up from single counts with much noise, and may be far off."
    return Panel(f"Shares by {name}", warning=warning if share["guess"] else None)


def _map_panel(flows: Chart) -> MapPanel:
    located = [number for number, zone in enumerate(flows["zones"]) if zone[1] is not None]
    outside = flows["outside"]
    zoom = {-1: "most trips", -2: "all stops"} if outside else {-1: "everything"}
    missing = (
        f" The {flows['hidden']:,} stops with the fewest trips are not drawn." if flows["hidden"] else ""
    )
    if outside:
        missing += (
            f" {_stops_lie(outside)} far from most trips, outside this map ({percent(flows['outside_share'])} of all starts and ends of trips): "
            f"zoom to all stops to see {'it' if outside == 1 else 'them'}."
        )
    return MapPanel(_with_zones(zoom, flows["called"], located), missing)


def _dots_panel(data: Chart) -> MapPanel:
    chart = data["dots"]
    zoned = 1 < len(chart["zones"]) <= 40
    used = {stop[3] for stop in chart["stops"]}
    located = [number for number in range(len(chart["called"])) if number in used]
    missing = ""
    if chart["outside"]:
        missing = f" {_stops_lie(chart['outside'])} far away, outside this map ({percent(chart['outside_share'])} of all {data['noun'][1]})."
    return MapPanel(_with_zones({-1: "everything"}, chart["called"], located), missing, zoned)


def _with_zones(zoom: Options, names: list[str], located: Iterable[int]) -> Options:
    """What a map may be zoomed to; nothing where there is no choice."""
    zones = {number: names[number] for number in located}
    choices = {**zoom, **(zones if len(zones) > 1 else {})}
    return choices if len(choices) > 1 else {}


def _stops_lie(many: int) -> str:
    return "1 stop lies" if many == 1 else f"{many:,} stops lie"
