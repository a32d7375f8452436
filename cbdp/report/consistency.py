"""How the tables fit together: what holds among the numbers, checked for this release while its page is written."""

from __future__ import annotations

import numpy as np

from cbdp.features import SINGLETON, TOTAL
from cbdp.release.counted import counted
from cbdp.release.published import LISTED, Published
from cbdp.release.roles import listed
from cbdp.report.markup import Html, join, tag
from cbdp.report.pictures import dag_picture
from cbdp.report.support import expects
from cbdp.report.text import spoken
from cbdp.report.trust import gathers


def fitting_together(published: Published) -> Html:
    dag = published.dag
    noun = counted(dag.universe)
    ends = f"“{TOTAL}” is all {noun.many} together; “{SINGLETON}” has a count for {_single(published)} ({dag.universe.size:,} of them)."
    picture = tag(
        "div", dag_picture(dag), class_="scroll", tabindex=0, role="region", aria_label="Picture of the tables",
    )  # fmt: skip
    said = tag("p", f"Each table adds up to the tables that its arrows point to. {ends}")
    return tag("div", picture, tag("div", said, consistency(published)), class_="beside")


def consistency(published: Published) -> Html:
    whole, noun = "Every published count is a whole number, zero or more. ", counted(published.dag.universe)
    if published.release.tables:
        hidden = noun.say("Small counts were left out: a zero may stand for a few trips. ")
        return tag("p", whole, hidden, _disagreement(published))
    adds = "All tables are sums of the same published trips, so they add up to each other exactly, on this page and in the files. "
    said = noun.say(adds + _rounding(published) + _gathered(published))
    return join(tag("p", whole, said), _certificate(published))


def _single(published: Published) -> str:
    """What “singleton” counts, in words."""
    names = [spoken(name) for name in published.dag.universe.dimensions]
    return f"every combination of {listed(names)}" if len(names) > 1 else f"every {names[0]}"


def _disagreement(published: Published) -> str:
    dag = published.dag
    known = [n for n in published.release.tables if n != SINGLETON and dag.size(n) <= LISTED]
    pairs = [(f, c) for f in known for c in known if f != c and (f, c) in dag.graph.edges]
    apart = "Noise was added to each table separately"
    if not pairs:
        return f"{apart}, so they need not agree."
    off = sum(not _adds_up(published, fine, coarse) for fine, coarse in pairs)
    some = f"{off} {'does' if off == 1 else 'do'} not"
    return f"{apart}. Of {len(pairs)} pairs of tables that should add up, {some}: do not combine numbers of different tables."


def _adds_up(published: Published, fine: str, coarse: str) -> bool:
    total = np.zeros(published.dag.size(coarse), dtype=np.int64)
    np.add.at(total, published.dag.map_elements(fine, coarse), published.release.counts(fine))
    return bool((total == published.release.counts(coarse)).all())


def _rounding(published: Published) -> str:
    release = published.release
    violated = {name: off for name, off in (release.violations or {}).items() if off}
    if violated:
        counts = [f"{n:,} {'count' if n == 1 else 'counts'} of {name}" for name, n in violated.items()]
        return (
            "The tables overlap in too many ways for rounding to keep all of them exact: "
            f"it moved {listed(counts)} by one trip or more, and no other count."
        )
    if release.estimate is None:
        return ""
    names = [n for n in published.dag.features if n != SINGLETON and published.dag.size(n) <= LISTED]
    moved = max(float(np.abs(release.counts(n) - release.estimate.counts(n)).max(initial=0)) for n in names)
    return (
        "Rounding to whole trips changed every count in these tables by less than one trip."
        if moved < 1
        else ""
    )


def _gathered(published: Published) -> str:
    if not gathers(published.release):
        return ""
    return (
        f" Where no table tells combinations apart, trips were put on those that are most likely to be used. Every count in a table is still its estimate, "
        f"rounded down or up. To read a single number of “{SINGLETON}”, use the estimate in the files, not the count."
    )


def _certificate(published: Published) -> Html | None:
    solution = getattr(published.release.estimate, "solution", None)
    residual = getattr(solution, "kkt_residual", None)
    if residual is None:
        return None
    to = "what is to be expected after all measurements" if expects(published.release) else "the measurements"
    said = (
        f"The estimates are the consistent numbers, none below zero, that are closest to {to}. This was checked afterwards, independently "
        f"of the solver: the conditions for an optimum hold up to {residual:.1e} (KKT residual)."
    )
    return tag("details", tag("summary", "For reviewers: how this was checked"), tag("p", said))
