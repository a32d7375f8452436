"""The public report of a release: one self-contained page, made of published values only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cbdp.features.places import Stops
from cbdp.privacy.composition import amount_of
from cbdp.release.counted import counted
from cbdp.release.published import Published, publish
from cbdp.release.release import Release
from cbdp.release.roles import Roles, roles
from cbdp.release.words import price, title_of
from cbdp.report.charts import Chart, charts
from cbdp.report.consistency import fitting_together
from cbdp.report.explore import Section, demand, explore
from cbdp.report.glossary import glossary
from cbdp.report.head import header
from cbdp.report.markup import Html, join, page, tag
from cbdp.report.pictures import budget_picture
from cbdp.report.protection import protection
from cbdp.report.verdicts import verdicts


def build(release: Release, *, places: Stops | None = None, manifest: Mapping[str, Any] | None = None) -> str:
    """The report of a release as HTML, which opens offline and asks nothing of any server.

    `places` gives the stops' coordinates for the map, `manifest` what is folded at its end; a release that carries
    its own needs neither. The same release gives the same page to the byte.

    >>> import cbdp
    >>> features = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B"], time=["am", "pm"]), [cbdp.Feature("time", by=["time"])])
    >>> trips = {"stop": ["A", "A", "B"], "time": ["am", "pm", "pm"]}
    >>> release = cbdp.ConstraintBased(features, epsilon=1).simulate(trips, seed=0)
    >>> page = build(release)
    >>> page.startswith("<!doctype html>")
    True
    """
    published = publish(release, places, manifest)
    parts, data = roles(published.dag), charts(published)
    sections = [s for s in _sections(published, parts, data) if s is not None]
    body = join(
        header(published, parts, data),
        tag("nav", [tag("a", name, href=f"#{key}") for key, name, _ in sections], aria_label="Contents"),
        tag("main", [tag("section", tag("h2", name), inside, id=key) for key, name, inside in sections]),
        tag(
            "footer", tag("p", "Made by cbdp from published values only. Opening this page sends no request.")
        ),
    )
    mark = "" if release.secure else "Simulation: "
    return page(f"{mark}{title_of(release, parts)}: report", body, data)


def _sections(published: Published, parts: Roles, data: Chart) -> list[Section | None]:
    return [
        ("protection", "What is protected, and how strongly", protection(published)),
        demand(published, data),
        explore(parts, data),
        ("trust", "How far each table can be trusted", verdicts(published)),
        ("budget", "Where the privacy budget went", _budget(published)),
        ("tables", "How the tables fit together", fitting_together(published)),
        _manifest(published),
        ("glossary", "Glossary", glossary(counted(published.dag.universe))),
    ]


def _budget(published: Published) -> Html:
    claim, spends = published.release.promise, published.spends()
    sign, total = ("ρ" if claim.cost.currency == "rho" else "ε"), amount_of(claim.cost)
    whole = f"{sign} = {price(total)}"
    said = f"The whole budget is {whole}."
    if not claim.holds:
        said = f"The noise is as large as a budget of {whole} would make it, but nothing is promised."
    delta = f" δ in total: {float(claim.cost.delta):.2g}." if claim.cost.delta and sign == "ε" else ""
    shared = "The privacy budget was shared among the tables. A larger share means less noise. "
    return join(
        tag("p", shared, said, delta),
        budget_picture({name: amount_of(spend) for name, spend in spends.items()}, total, sign),
    )


def _manifest(published: Published) -> Section | None:
    if not published.manifest:
        return None
    shown = json.dumps(published.manifest, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    inside = tag("details", tag("summary", "Show the manifest (JSON)"), tag("pre", shown, tabindex=0))
    said = tag(
        "p",
        "Everything a reviewer needs to check this release: settings, versions and hashes. The file manifest.json in the "
        "release’s folder also has the SHA-256 of every file.",
    )
    return "manifest", "Manifest", join(said, inside)
