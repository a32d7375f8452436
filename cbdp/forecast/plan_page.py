"""The page of `cbdp plan` as HTML: choose ε, shares, periods and zones, and see what tables would tell and what somebody could find out.

What moves is drawn by `page.js`, with the formulas of `formulas.js`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cbdp.privacy.accounting import epsilon_of, readable_epsilon
from cbdp.release.roles import TRIP_NOUN, Noun
from cbdp.report.markup import Html, join, page, tag

Translate = Callable[[str], str]
RESOURCES = "cbdp.forecast"
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
    say = _noun(facts).say
    body = join(
        _header(facts, say),
        tag(
            "main",
            tag("div", _controls(facts, say), tag("div", _results(say), class_="results"), class_="plan"),
        ),
        tag(
            "footer",
            tag(
                "p",
                say(
                    "Made by cbdp from public facts only: the configuration (which is inside this page), the stops, the ledger. No trip was read. Opening this page sends no request."
                ),
            ),
        ),
        tag("div", id="summary", role="status", aria_live="off"),
    )
    return page(f"{facts['name']}: plan", body, data, RESOURCES)


def _noun(facts: Mapping[str, Any]) -> Noun:
    """What is counted: trips, if nothing else is said."""
    return Noun(**facts["noun"]) if "noun" in facts else TRIP_NOUN


def _header(facts: Mapping[str, Any], say: Translate) -> Html:
    return tag(
        "header",
        tag("p", facts["name"], class_="where"),
        tag("h1", f"Choose {MEASURE_SYMBOLS[facts['currency']]}: what it tells, what it protects"),
        tag(
            "p",
            say("Move the sliders. The page shows how precise each table would be, and how sure somebody could become about one trip, a commuter or a "
                "family. When you are happy with it, copy the configuration."),
            class_="lead",
        ),
        tag("noscript", tag("p", "This page computes in your browser: please allow scripts.", class_="warning")),
        tag("div", id="tiles", class_="tiles"),
    )  # fmt: skip


def _controls(facts: Mapping[str, Any], say: Translate) -> Html:
    sign = MEASURE_SYMBOLS[facts["currency"]]
    return tag(
        "form",
        tag("h2", "Settings"),
        _slider("amount", f"Privacy budget {sign}", "Smaller protects better, larger tells more."),
        tag("p", id="strength", class_="note"),
        _unit_choice(say),
        _slider("k", say("Trips of one person that count"), "The others are left out, chosen at random."),
        _slider("period", "Length of a period", say("Longer periods hold more trips, so noise matters less.")),
        _slider("zone", "Zones", say("Fewer, larger zones hold more trips. Fewer zones than now are drawn anew from the stops’ coordinates.")),
        tag("div", tag("label", say("About how many trips are there?"), for_="trips"),
            tag("input", id="trips", type="number", min=1, step="any", inputmode="numeric"),
            tag("span", "A round public number. It only serves to predict errors.", class_="about"), class_="setting"),
        tag("details",
            tag("summary", "Shares of the tables"),
            tag("div", tag("label", "Shared", for_="budget"), tag("select", id="budget"), class_="setting"),
            tag("div", id="shares"), id="sharing"),
        tag("p", tag("button", "Start again", type="button", id="again")),
        id="controls", class_="settings", autocomplete="off",
    )  # fmt: skip


def _unit_choice(say: Translate) -> Html:
    options = [
        tag("option", say("one trip"), value="trip"),
        tag("option", say("one person, with all their trips"), value="person"),
    ]
    about = tag("span", id="unit-about", class_="about")
    return tag(
        "div",
        tag("label", "Who is protected", for_="unit"),
        tag("select", options, id="unit"),
        about,
        class_="setting",
    )


def _slider(key: str, name: str, about: str) -> Html:
    return tag(
        "div",
        tag("label", name, for_=key),
        tag("output", id=f"{key}-value", for_=key),
        tag("input", id=key, type="range", min=0, step=1),
        tag("span", about, class_="about"),
        class_="setting",
        id=f"{key}-setting",
    )


def _results(say: Translate) -> list[Html]:
    return [
        _section("tables", "What each table would tell", tag("p", id="confidence"), tag("div", id="told"), _thresholds()),
        _section("risk", "What somebody could find out", _risk(say)),
        _section("others", "Where others stand", _other_deployments()),
        _section("left", "What is left of the budget", tag("div", id="account")),
        _section("take", "Take these settings", _download()),
        _section("how", "How these numbers are made", _method(say)),
    ]  # fmt: skip


def _section(key: str, title: str, *inside: Html) -> Html:
    return tag("section", tag("h2", title), *inside, id=key)


def _thresholds() -> Html:
    return tag("details", tag("summary", "What the verdicts mean"), tag("dl", id="uses"))


def _risk(say: Translate) -> Html:
    prior = tag(
        "div",
        tag("label", "Somebody already thinks it is this likely", for_="prior"),
        tag("output", id="prior-value", for_="prior"),
        tag("input", id="prior", type="range", min=0, step=1),
        class_="setting prior",
    )
    means = (
        "These are upper limits that hold for everybody, whatever else they know and however they compute. Nobody has to come near them. "
        "Several trips of one person count together: that is why a commuter is protected less than a single trip, unless the unit is a person. Where only so many trips of a person count, one trip more can push another out: so ε of a single trip is that of two changes. A commuter’s month is 2 trips on each of 20 days, all in releases with these settings."
    )
    return join(
        prior,
        tag("div", id="beliefs"),
        tag("div", id="curve", class_="chart"),
        tag("p", say(means), class_="note"),
    )


def _other_deployments() -> Html:
    lead = (
        "An ε only means something together with what it protects. The same ε is a weaker promise for one trip than for a whole day, and weaker for a "
        "day than for a month: a person’s days add up."
    )
    listed = [
        [
            tag("dt", d.name),
            tag("dd", f"{d.promise}, for {d.what}.", f" Precision: {d.precise}." if d.precise else "", tag("span", f"Source: {d.source}.", class_="about")),
        ]
        for d in DEPLOYMENTS
    ]  # fmt: skip
    return join(
        tag("p", lead),
        tag("div", id="strip", class_="chart"),
        tag(
            "details",
            tag("summary", "What each of them promises, and where that is stated"),
            tag("dl", listed),
        ),
    )


def _download() -> Html:
    return join(
        tag("p", id="take-about"),
        tag("pre", id="snippet", tabindex=0),
        tag(
            "p",
            tag("button", "Copy these lines", type="button", id="copy-lines"),
            " ",
            tag("button", "Copy the whole configuration", type="button", id="copy-all"),
            " ",
            tag("span", id="copied", role="status"),
        ),
    )


def _method(say: Translate) -> Html:
    return tag(
        "ul",
        tag("li", tag("b", "Off on average"), " is the usual distance between a published count and the true one; large errors weigh more (statisticians call it the root mean square). "
            "It accounts for the noise and for what the engine does afterwards: it makes the tables agree, and moves small noisy counts towards zero. ",
            tag("code", "cbdp check --json"), " has the same numbers."),
        tag("li", tag("b", "The average count"), say(" of a table is the number of trips divided by the number of its counts. A table is judged by it, here, in "),
            tag("code", "cbdp check"), " and in the report of a release."),
        tag("li", tag("b", "Published as"), " is where a count of that size would come out. This range is on the safe side: it does not count on the noise "
            "becoming smaller when small counts are moved towards zero, and it allows for what that takes away."),
        tag("li", tag("b", "Tested: "), "in simulated releases of three generated cities, predicted errors of tables were 0.8 to 1.4 times the real ones, and 94 % of "
            "3,984 counts of about average size came out within their range of 90 %. Errors of single trip types (one origin, one destination, one period) are harder to predict (0.2 to 1.6 times, unless "
            "data.expected_filled is stated); their ranges held. ", tag("code", "python -m benchmarks planned"), " does it again."),
        tag("li", tag("b", "What somebody could find out"), " follows from the definition of differential privacy: the odds of any conclusion grow at most ",
            say("by the factor e to the power of ε. Trips, days and people that belong together add up: twice as many, twice the ε.")),
        tag("li", say("Where at most so many trips of each person count, the trips that are left out are not part of these errors.")),
    )  # fmt: skip


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
