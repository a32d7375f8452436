"""The page of `cbdp plan`: the public facts that it computes with, and its HTML. Choose ε, shares, periods and zones, and see what tables would tell
and what somebody could find out. No trip is read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from cbdp.config import Config, TimeGrid
from cbdp.config.values import key_lines
from cbdp.errors import InputError
from cbdp.features import SINGLETON
from cbdp.forecast.errors import EXAMPLE_COUNT, LEVELS, number, reach, what_of
from cbdp.forecast.plan import ModelledMechanism, PlannedRelease, Variant, is_modelled, seconds, zoning
from cbdp.privacy import expected_error as model
from cbdp.privacy.accounting import epsilon_of, readable_epsilon, rho_for
from cbdp.privacy.budget import MAX_TABLE_EPSILON, LeavesBudget, allocate
from cbdp.privacy.expected_error import UNMEASURED_PRECISION, design_strata
from cbdp.privacy.unit import Person, Sensitivity, Trip, Unit, sensitivity
from cbdp.release.views import TRIP_NOUN, Noun, counted_noun
from cbdp.report.reliability import GOOD_RELATIVE_ERROR, USES
from cbdp.report.rendering import render
from cbdp_features.contribution import contribution_structure

AMOUNT_STEPS = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
AMOUNT_POWERS = {"epsilon": (-2, -1, 0, 1), "rho": (-4, -3, -2, -1, 0)}
MAX_AMOUNT = {"epsilon": 20, "rho": 5}  # beyond it nobody is protected
MAX_TRIPS_CHOICES = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50)
PROPORTIONAL_BUDGETS = ("balanced", "tables", "uniform")  # budgets whose parts are the same for every amount
WORKDAYS, TRIPS_A_DAY = 20, 2  # of a commuter in a month
RELEASES_PER_MONTH = {
    "daily": WORKDAYS,
    "weekly": 4,
    "monthly": 1,
}  # releases that a commuter's month is spread over


def page_facts(plan: PlannedRelease) -> dict[str, Any]:
    """All that the page needs, as JSON."""
    mechanism = _modelled(plan)
    every = list(plan.variants())
    currency = _currency(plan)
    amounts, ks = _amounts(plan, currency), sorted({*MAX_TRIPS_CHOICES, getattr(plan.unit, "max_trips", 1)})
    return {
        "name": plan.dataset if plan.about is None else plan.about.title or plan.dataset,
        "config": plan.config.source.path.name,
        "law": mechanism.law,
        "currency": currency,
        "delta": float(mechanism.delta or 0),
        "amounts": [number(v) for v in amounts],
        "costs": [_cost(mechanism, currency, v) for v in amounts],
        "own": number(getattr(plan.config.privacy, currency)),
        "levels": [asdict(level) | {"upto": min(level.upto, 1e9)} for level in LEVELS],
        "confidence": plan.confidence,
        "reach": reach(plan.confidence),
        "trips": plan.expected_trips,
        "noun": asdict(counted_noun(plan.universe)),
        "filled": plan.config.data.expected_filled,
        "unknown": EXAMPLE_COUNT,
        "unit": _unit_facts(plan),
        "ks": ks,
        "budget": _budget_name(mechanism),
        "enough": float(MAX_TABLE_EPSILON) if mechanism.expects else None,
        "spared": float(LeavesBudget.spared),
        "public": list(plan.public),
        "tables": {name: what_of(_distinguishing(plan, f.by)) for name, f in plan.features.features.items()},
        **_grid(plan, every, _units(plan, ks)),
        "good": GOOD_RELATIVE_ERROR,
        "uses": [asdict(use) | {"within": min(use.within, 1e9)} for use in USES],
        "model": _model_constants(),
        "account": _account_facts(plan),
        "month": {"days": WORKDAYS, "trips": TRIPS_A_DAY, "pieces": _pieces(plan)},
        "toml": template(plan.config),
        "time": _hours(plan),
    }


def _distinguishing(plan: PlannedRelease, by: Iterable[str]) -> list[str]:
    """The attributes that tell counts apart: not a dimension with one value, such as tap-ons alone."""
    return [name for name in by if len(plan.universe.attribute(name).labels) > 1]


def _modelled(plan: PlannedRelease) -> ModelledMechanism:
    """The mechanism, if its errors can be told beforehand for any settings."""
    if not is_modelled(plan.mechanism):
        raise InputError(
            f"a page to plan with needs the mechanism 'constraint-based', whose errors can be told for any ε; for "
            f"{plan.mechanism.name!r} use `cbdp check`"
        )
    if isinstance(plan.unit, Person) and plan.unit.bought is not None:
        raise InputError(
            f"max_trips is bought: state it as a number to plan with, like max_trips = {plan.unit.max_trips}"
        )
    return plan.mechanism


def _currency(plan: PlannedRelease) -> str:
    """What the configuration states: ρ, or ε (which Gaussian noise turns into ρ)."""
    return "epsilon" if plan.config.privacy.rho is None else "rho"


def _amounts(plan: PlannedRelease, currency: str) -> list[Fraction]:
    """What may be chosen, in order; the configured one is among them."""
    configured = getattr(plan.config.privacy, currency)
    steps = {Fraction(f"{step}e{power}") for power in AMOUNT_POWERS[currency] for step in AMOUNT_STEPS}
    return sorted({*(v for v in steps if v <= MAX_AMOUNT[currency]), configured})


def _cost(mechanism: ModelledMechanism, currency: str, amount: Fraction) -> list[float]:
    """An amount as it is stated, what is spent for it (ε, or ρ for Gaussian noise), and the ε that it gives."""
    if mechanism.law_kind.currency == "epsilon":
        return [float(amount)] * 3
    spent = rho_for(amount, mechanism.delta) if currency == "epsilon" else amount
    return [float(amount), float(spent), float(epsilon_of(spent, mechanism.delta))]


def _units(plan: PlannedRelease, ks: Sequence[int]) -> list[Unit]:
    """What may be protected: one trip, or a person with at most so many."""
    unit = plan.unit
    if isinstance(unit, Person):
        return [Trip(), *(replace(unit, max_trips=k) for k in ks)]
    return [unit, *(Person("person", k) for k in ks)]


def _unit_facts(plan: PlannedRelease) -> dict[str, object]:
    unit = plan.unit
    if isinstance(unit, Person):
        return {"kind": "person", "column": unit.column, "k": unit.max_trips, "per": unit.per, "apart": unit.apart, "known": True}  # fmt: skip
    person = plan.person_column
    return {
        "kind": "trip", "neighbours": unit.neighbours, "column": person or "card_id", "k": 4, "per": "release", "apart": None,
        "known": person is not None,
    }  # fmt: skip


def _budget_name(mechanism: ModelledMechanism) -> str:
    return mechanism.budget if isinstance(mechanism.budget, str) else "as given"


def _grid(plan: PlannedRelease, every: Iterable[Variant], units: Sequence[Unit]) -> dict[str, object]:
    """Periods and zones that can be chosen, each with the variants that exist."""
    by_choice = {(v.every, v.clusters): v for v in every}
    configured = getattr(plan.config.universe.time, "every", None)
    periods = sorted({e for e, _ in by_choice}, key=lambda e: seconds(e or configured) if configured else 0)
    zones = sorted({z for _, z in by_choice}, key=lambda z: -(z or 10**9))
    many = len(set(plan.stops.zone)) if plan.stops is not None and plan.stops.zone else None
    return {
        "periods": [e or configured for e in periods],
        "period": periods.index(None),
        "zones": [z or many for z in zones],
        "zone": zones.index(None),
        "zoning": zoning(plan.config),
        "variants": [[_variant_facts(by_choice.get((e, z)), units) for z in zones] for e in periods],
    }


def _variant_facts(choice: Variant | None, units: Sequence[Unit]) -> dict[str, object] | None:
    """What the model of errors knows of the features, and how budgets share among them."""
    if choice is None:
        return None
    assert is_modelled(choice.mechanism)
    strata, mechanism, person = design_strata(choice.features), choice.mechanism, units[-1]
    structures = [
        contribution_structure(choice.features, name, person.per, person.apart) for name in strata.names
    ]
    answers = {a.feature: a.share / mechanism.amount for a in mechanism.answers()}
    return {
        "types": choice.features.universe.size,
        "names": list(strata.names),
        "sizes": strata.sizes.tolist(),
        "degrees": strata.degrees.tolist(),
        "told": strata.refines.astype(int).tolist(),
        "leaf": strata.names.index(SINGLETON),
        "measured": list(answers),
        "own": [float(p) for p in answers.values()],
        "parts": {
            name: [float(p) for p in _parts(mechanism, name).values()] for name in PROPORTIONAL_BUDGETS
        },
        "changes": [[_lengths(sensitivity(unit, tells)) for tells in structures] for unit in units],
        "periods": [tells.periods for tells in structures],
    }


def _lengths(change: Sensitivity) -> list[int]:
    """How much one unit can change a table's counts: all together, and the sum of their squares."""
    return [change.l1, change.l2_squared]


def _parts(mechanism: ModelledMechanism, budget: str) -> Mapping[str, Fraction]:
    shares = allocate(
        mechanism.features, mechanism.amount, budget, mechanism.queried, facts=mechanism.facts()
    )
    return {name: share / mechanism.amount for name, share in shares.items()}


def _model_constants() -> dict[str, float]:
    """The numbers of the model, so that there is one place for them."""
    first, last, step = (
        float(model.QUADRATURE_NODES[0]),
        float(model.QUADRATURE_NODES[-1]),
        float(model.QUADRATURE_NODES[1] - model.QUADRATURE_NODES[0]),
    )
    return {
        "first": first, "last": last, "step": step, "spread": model.LOG_DEMAND_VARIANCE, "gathered": model.EFFECTIVE_TYPES_EXPONENT, "certain": model.PUBLIC_PRECISION,
        "largest": model.MAX_NOISE_RATE, "tiny": UNMEASURED_PRECISION,
    }  # fmt: skip


def _account_facts(plan: PlannedRelease) -> dict[str, object]:
    """What the ledger says; amounts of ε or ρ are public, as every manifest states them."""
    account = plan.account
    limited = not account.cap.is_unlimited
    return {
        "file": account.path.name,
        "exists": account.exists,
        "currency": account.cap.currency,
        "caps": str(account.caps),
        "cap": float(account.cap.value) if limited else None,
        "spent": float(account.spent.value),
        "stated": plan.config.privacy.cap is not None or account.exists,
    }


def _pieces(plan: PlannedRelease) -> int:
    """How many releases a commuter's month is spread over: one, unless there is a series."""
    return 1 if plan.config.series is None else RELEASES_PER_MONTH[plan.config.series.calendar]


def _hours(plan: PlannedRelease) -> dict[str, str] | None:
    grid = plan.config.universe.time
    return {"start": grid.start, "end": grid.end} if isinstance(grid, TimeGrid) else None


# The configuration's text, with the places of the lines that the page can change
#
# Only keys that stand on lines of their own are known; where a table is written in another way, the page shows the lines to write instead.


EDITABLE_KEYS = (
    ("data", "expected_trips"),
    ("universe", "time"),
    ("universe", "zones"),
    ("privacy", "epsilon"),
    ("privacy", "rho"),
    ("privacy", "delta"),
    ("privacy", "unit"),
    ("privacy", "budget"),
    ("privacy", "target"),
)
EDITABLE_SECTIONS = ("data", "universe", "privacy")
DATABASE_LOGIN = re.compile(r"://[^\s\"'/]*@")  # of a database: it is not put on a page that may be passed on


def template(config: Config) -> dict[str, object] | None:
    """The lines of the file, where each key's lines begin and end, and the line after each section's head; None: it cannot be told."""
    text = config.source.path.read_text("utf-8")
    if DATABASE_LOGIN.search(text):
        return None
    lines, at = text.split("\n"), key_lines(text)
    written = tomllib.loads(text)
    spans = {}
    for section, key in EDITABLE_KEYS:
        if key in written.get(section, {}):
            span = _span(lines, at[section, key] - 1, key, written[section][key])
            if span is None:
                return None
            spans[f"{section}.{key}"] = span
    heads = {s: at[(s,)] for s in EDITABLE_SECTIONS if (s,) in at and _head(lines[at[(s,)] - 1], s)}
    if set(heads) != {s for s in EDITABLE_SECTIONS if s in written}:
        return None
    return {"lines": lines, "spans": spans, "heads": heads}


def _head(line: str, section: str) -> bool:
    return re.fullmatch(rf"\s*\[\s*{section}\s*\]\s*(#.*)?", line.rstrip("\r")) is not None


def _span(lines: list[str], start: int, key: str, value: object) -> list[int] | None:
    """The lines from this one on that say the key and nothing else."""
    for end in range(start + 1, len(lines) + 1):
        try:
            document = tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return [start, end] if document == {key: value} else None
    return None


# The page: what moves is drawn by `page.js`, with the formulas of `formulas.js`


MEASURE_SYMBOLS = {"epsilon": "ε", "rho": "ρ"}


def build(facts: Mapping[str, Any]) -> str:
    """The page for these public facts (`page_facts`); it opens offline and asks nothing of any server.

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
