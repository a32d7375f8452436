"""The page of `cbdp plan` as HTML: choose ε, shares, periods and zones, and see what tables would tell and what somebody could find out.

What moves is drawn by `page.js`, with the formulas of `formulas.js`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cbdp.privacy.accounting import epsilon_of, readable_epsilon
from cbdp.release.roles import TRIP_NOUN, Noun
from cbdp.report.rendering import render

MEASURE_SYMBOLS = {"epsilon": "ε", "rho": "ρ"}


def build(facts: Mapping[str, Any]) -> str:
    """The page for these public facts (`cbdp.forecast.page`); it opens offline and asks nothing of any server.

    >>> page = build({"name": "Practice town", "currency": "epsilon"})  # the frame alone: the rest of the facts fills it
    >>> "Choose ε" in page
    True
    """
    others = [
        {
            "name": d.name,
            "unit": list(UNITS).index(d.unit),
            "epsilon": float(d.shown),
            "promise": d.promise,
            "what": d.what,
        }
        for d in DEPLOYMENTS
    ]
    data = {**facts, "others": others, "units": list(UNITS.values())}
    noun = Noun(**facts["noun"]) if "noun" in facts else TRIP_NOUN
    return render(
        "forecast/plan.html.jinja",
        style=["forecast/page.css"],
        script="forecast/page.js",
        data=data,
        facts=facts,
        say=noun.say,
        sign=MEASURE_SYMBOLS[facts["currency"]],
        deployments=DEPLOYMENTS,
    )


# Known publications, what they promise and to whom: figures that their publishers or the OpenDP deployments registry state
#
# The registry (registry.opendp.org, data at github.com/opendp/deployments-registry-data) was read in November 2026. Nothing is listed that no source confirms.


UNITS = {
    "trip": "one trip or event",
    "day": "a person’s day",
    "week": "a person’s week",
    "month": "a person’s month",
    "person": "a person, in all of a release",
}


@dataclass(frozen=True)
class Deployment:
    """A publication, what it protects, and how strongly."""

    name: str
    unit: str  # a key of UNITS
    what: str  # the unit in its publisher's terms
    epsilon: Fraction | None
    source: str
    delta: str = ""  # as stated
    rho: Fraction | None = None
    precise: str = ""  # what is said of how precise its numbers are

    @property
    def shown(self) -> Fraction:
        """ε, or what ρ gives at the stated δ."""
        if self.epsilon is not None:
            return self.epsilon
        assert self.rho is not None
        return epsilon_of(self.rho, Fraction(self.delta))

    @property
    def promise(self) -> str:
        """As it is stated, with the ε that a ρ gives."""
        text = f"ε = {readable_epsilon(self.shown)}" + (f" at δ = {self.delta}" if self.delta else "")
        return text if self.rho is None else f"ρ = {float(self.rho):g}, so {text}"


DEPLOYMENTS = (
    Deployment(
        "Google Community Mobility Reports (2020–2022)",
        "day",
        "what one user does on one day",
        Fraction("2.64"),
        "Aktay and others, arXiv:2004.04145; OpenDP registry",
        precise="a figure is left out if there is a chance of 5 % or more that it is off by over 10 percentage points",
    ),
    Deployment(
        "Meta Movement Range Maps (2020)",
        "day",
        "what one user does on one day",
        Fraction(2),
        "Facebook Research, “Protecting privacy in Facebook mobility data during the COVID-19 response”, June 2020; OpenDP registry",
    ),
    Deployment(
        "Wikimedia page views by country (since 2023)",
        "day",
        "10 page views of one device on one day",
        None,
        "Adeleye and others, arXiv:2308.16298; OpenDP registry",
        delta="1e-7",
        rho=Fraction("0.015"),
        precise="counts below 90 are left out",
    ),
    Deployment(
        "LinkedIn Audience Engagements (2020)",
        "month",
        "what one member does in one month",
        Fraction("34.9"),
        "Rogers and others, arXiv:2002.05839; OpenDP registry",
        delta="7e-9",
    ),
    Deployment(
        "LinkedIn hiring reports, top employers (2020)",
        "trip",
        "one hiring, in the reports of one month",
        Fraction("4.8"),
        "Rogers and others, arXiv:2010.13981; OpenDP registry",
        delta="4e-10",
    ),
    Deployment(
        "US Census 2020, redistricting data, persons",
        "person",
        "one person’s record",
        Fraction("17.14"),
        "Abowd and others, arXiv:2204.08986; OpenDP registry",
        delta="1e-10",
    ),
)


__all__ = ["build"]
