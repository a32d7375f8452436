"""Running totals of a series before any count: which span a release belongs to, what is charged for it, and how precise it will be.

A span is charged once, whole, before the first noise of it is drawn. Every release then holds the sums that end with it. If a run died after it may have
drawn those sums, the next one draws them anew and pays for that, as it does for the release itself.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbdp.config.sections import RunningSection, SeriesSection
from cbdp.errors import InputError
from cbdp.estimation.continual import gls_total
from cbdp.features import SINGLETON
from cbdp.forecast.calendar import Slot, charges_of, due_slots, last_of, series_of, shape_of
from cbdp.forecast.plan import PlannedRelease, is_modelled
from cbdp.ledger import Amount, Charge, ChargeScope, FinishedCharge, Ledger, SeriesPart
from cbdp.ledger.charges import NANO_UNITS, SYMBOLS
from cbdp.ledger.windows import check_together, release_of, window_sums
from cbdp.parts import did_you_mean
from cbdp.privacy.continual import (
    MAX_PERIODS,
    STRATEGIES,
    Span,
    Strategy,
    TableNoiseCost,
    cost_of_redraw,
    table_noise_costs,
)
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, NoiseDistribution, PrivacyMeasure
from cbdp.release.files import MANIFEST, read_manifest
from cbdp.release.serialization import exact_from
from cbdp.release.series import RUNNING_TOTALS
from cbdp.release.views import counted_noun
from cbdp.text import aligned

if TYPE_CHECKING:
    from cbdp.config import Config
    from cbdp.release.manifest_model import RunningJson


MAX_YEARS_AHEAD = 100  # years in which the days of a span are looked for
REDRAWN_SUMS = "running totals, drawn again"
MAX_PERIOD_DAYS = {"daily": 1, "weekly": 7, "monthly": 31}  # days of a period, at most
PERIODS_PER_YEAR = {"daily": 365, "weekly": 52, "monthly": 12}


@dataclass(frozen=True)
class PlaceInSpan:
    """A release's place in its span: which it is, from 1 on, and those before it."""

    span: Span
    last: dt.date  # the last day that the span's charge covers
    earlier: tuple[FinishedCharge, ...]

    @property
    def number(self) -> int:
        return len(self.earlier) + 1


def declared(plan: PlannedRelease) -> RunningSection | None:
    """What the configuration says of running totals, checked."""
    series = series_of(plan.config)
    section, mechanism = series.running, plan.mechanism
    if section is None:
        return None
    wrong = plan.config.source.error
    if series.revise != "never":
        raise wrong(
            ("series", "running"),
            f'running totals are of periods that are released once, and revise is "{series.revise}": write revise = "never", or leave '
            "running out",
        )
    if periods_of(series) > MAX_PERIODS:
        raise wrong(
            ("series", "running", "periods"), f"periods is {periods_of(series)}: at most {MAX_PERIODS:,}"
        )
    if not is_modelled(mechanism):
        raise wrong(("series", "running"), f"{mechanism.name} has no use for running totals: leave them out")
    measured = [a.feature for a in mechanism.answers() if a.feature != SINGLETON]
    for n, name in enumerate(section.tables):
        if name not in measured or name in section.tables[:n]:
            cure = "list it once" if name in measured else did_you_mean(name, measured)
            raise wrong(
                ("series", "running", "tables", n), f"no running totals of {name!r} can be kept: {cure}"
            )
    return section


def periods_of(series: SeriesSection) -> int:
    """How many releases a span has: as is said, or those of a year."""
    assert series.running is not None
    return series.running.periods or PERIODS_PER_YEAR[series.calendar]


def place_of(config: Config, plan: PlannedRelease, section: RunningSection) -> PlaceInSpan:
    """The span that is open, or a new one that begins with this release. `config` is that of the whole series."""
    assert plan.slot is not None
    slots = _Slots(config, periods_of(series_of(config)))
    if not Ledger.started(plan.account.path):
        return _new_span(plan, section, slots)
    with Ledger.view(plan.account.path) as ledger:
        releases = [(done, m) for done, m in _finished_releases(plan, ledger) if m]
        later = [day for day in _drawn(plan, ledger, releases) if day > plan.slot.first]
        if later:
            raise config.source.error(
                ("series", "running"),
                f"{plan.slot.period} is before {min(later)}, whose running totals are published, or were drawn by a run that died: they are made "
                f"in the order of days. List {plan.slot.period} in series.gaps",
            )
        open_span = _open_span(plan, section, ledger, releases) if releases else None
        return open_span or _new_span(plan, section, slots)


def _finished_releases(
    plan: PlannedRelease, ledger: Ledger
) -> Iterator[tuple[FinishedCharge, RunningJson | None]]:
    """The releases of this version of the series, in the order of their days, with what they hold of running totals."""
    series = series_of(plan.config)
    charged = charges_of(ledger, series.name, plan.dataset)
    asked = dict.fromkeys(c.request for c in charged if c.part and c.part.version == series.version)
    finished = [done for done in map(ledger.finished, asked) if done is not None]
    for done in sorted(finished, key=lambda one: _first_day(one.charge)):
        yield done, running_of(Path(done.path), done.sha256)


def _drawn(
    plan: PlannedRelease, ledger: Ledger, releases: list[tuple[FinishedCharge, RunningJson]]
) -> Iterator[dt.date]:
    """The first days of releases whose sums are published, or may have been drawn by a run that died: they have the place in the span
    that the next release would take.
    """
    yield from (_first_day(done.charge) for done, _ in releases)
    series = series_of(plan.config)
    charge_ids = {charge.id for charge in charges_of(ledger, series.name, plan.dataset)}
    for charge in ledger.unfinished():
        if charge.id in charge_ids and charge.part and charge.part.version == series.version:
            yield _first_day(charge)


def _first_day(charge: Charge) -> dt.date:
    assert charge.covers is not None
    assert charge.covers.first is not None
    return charge.covers.first


@lru_cache(maxsize=MAX_PERIODS)
def running_of(folder: Path, sha256: str) -> RunningJson | None:
    """What the manifest of a release says of running totals; it must be there, as it was published."""
    try:
        text = (folder / MANIFEST).read_bytes()
    except OSError:
        raise InputError(
            f"running totals need every release of their span, and {str(folder)!r} is gone: restore it"
        ) from None
    if hashlib.sha256(text).hexdigest() != sha256:
        raise InputError(
            f"the manifest in {str(folder)!r} is not the one that was released: restore the folder"
        )
    return read_manifest(folder).get("running")


def _open_span(
    plan: PlannedRelease,
    section: RunningSection,
    ledger: Ledger,
    releases: list[tuple[FinishedCharge, RunningJson]],
) -> PlaceInSpan | None:
    """The span of the last release, if it goes on."""
    assert plan.slot is not None
    last = releases[-1][1]
    charge = next((c for c in ledger.charges() if c.request == last["request"]), None)
    if charge is None or charge.covers is None or charge.covers.last is None:
        raise InputError(f"the ledger does not hold the charge for running totals since {last['first']}")
    if last["number"] >= last["periods"] or plan.slot.first > charge.covers.last:
        return None
    _check_same(plan, section, last)
    tables = {
        t["feature"]: TableNoiseCost(
            law := NOISE_DISTRIBUTIONS.installed(t["law"])(exact_from(t["scale"])),
            exact_from(t["rho"] if law.currency == "rho" else t["epsilon"]),
        )
        for t in last["tables"]
    }
    first = dt.date.fromisoformat(last["first"])
    span = Span(first, last["periods"], last["strategy"], last["request"], tables)
    _check_unit(plan, span, charge.covers)
    earlier = tuple(done for done, m in releases if m["request"] == span.request)
    _check_gaps(plan, charge.covers, len(earlier))
    return PlaceInSpan(span, charge.covers.last, earlier)


def _check_same(plan: PlannedRelease, section: RunningSection, last: RunningJson) -> None:
    """Within a span its tables and sums stay as they are charged; other amounts, and other lengths, begin with the next."""
    before = sorted(t["feature"] for t in last["tables"]), last["strategy"]
    now = sorted(section.tables), strategy_of(plan, section)
    if before != now:
        raise plan.config.source.error(
            ("series", "running"),
            f"running totals of {', '.join(before[0])} by the {before[1]} are charged from {last['first']} on, and this says "
            f"{', '.join(now[0])} by the {now[1]}: undo that until the span is over, or raise series.version to begin a new one",
        )


def _check_gaps(plan: PlannedRelease, charged: ChargeScope, released: int) -> None:
    """What weeks and months of a person cost was worked out for the calendar as it was: later gaps would put them beside others."""
    assert plan.slot is not None
    assert charged.first is not None
    assert charged.last is not None
    number, last = (release_of(charged, day.toordinal()) for day in (plan.slot.first, charged.last))
    first = release_of(charged, charged.first.toordinal())
    same = release_of(charged, plan.slot.last.toordinal()) == number
    if not same or plan.slot.last > charged.last:
        raise plan.config.source.error(
            ("series", "start"),
            f"the running totals since {charged.first} were charged to {charged.last} for periods that begin as the first one does, and "
            f"{plan.slot.period} ({plan.slot.first} to {plan.slot.last}) is none of them: keep start as it was, or raise series.version to begin a new span",
        )
    if charged.calendar and last - first + 1 == charged.periods and number - first != released:
        raise plan.config.source.error(
            ("series", "gaps"),
            f"the running totals since {charged.first} were charged for releases without gaps, and {plan.slot.period} would be number "
            f"{released + 1} of them instead of {number - first + 1}: undo that, or raise series.version to begin a new span",
        )


def _check_unit(plan: PlannedRelease, span: Span, charged: ChargeScope) -> None:
    """The noise of a span is for what one unit could change when it was charged, and for that kind of unit."""
    mechanism, now = plan.mechanism, _covers(plan, span.first, plan.slot.last if plan.slot else span.first)
    assert is_modelled(mechanism)
    kinds = [(c.unit, c.per, c.calendar) for c in (now, charged)]
    alike = kinds[0] == kinds[1] and now.max_trips <= charged.max_trips
    if not alike or not span.covers(mechanism) or mechanism.currency != span.currency:
        raise plan.config.source.error(
            ("privacy", "unit"),
            f"the running totals since {span.first} are paid for another unit or law of noise, and {plan.unit} may change more: undo that "
            "until their span is over, or raise series.version to begin a new one",
        )


def _new_span(plan: PlannedRelease, section: RunningSection, slots: _Slots) -> PlaceInSpan:
    assert plan.slot is not None
    assert is_modelled(plan.mechanism)
    days, strategy = slots.since(plan.slot.first), strategy_of(plan, section)
    periods = len(days)
    shares = {a.feature: a.share for a in plan.mechanism.answers()}
    amounts = {name: section.share * shares[name] for name in section.tables}
    tables = table_noise_costs(plan.mechanism, amounts, STRATEGIES[strategy](periods))
    request = _request(plan, days[-1].last, periods, strategy, tables)
    return PlaceInSpan(Span(plan.slot.first, periods, strategy, request, tables), days[-1].last, ())


def strategy_of(plan: PlannedRelease, section: RunningSection) -> str:
    """The sums that are asked for, or the better ones for the law of the noise."""
    return section.strategy or ("square root" if plan.mechanism.currency == "rho" else "binary tree")


@dataclass(frozen=True)
class _Slots:
    """The calendar of a series, in pieces of so many releases."""

    config: Config
    many: int

    def since(self, first: dt.date) -> list[Slot]:
        """As many as are asked for, or as the series has left."""
        step = dt.timedelta(days=self.many * MAX_PERIOD_DAYS[series_of(self.config).calendar])
        until = first + step
        while True:
            slots = [slot for slot in due_slots(self.config, until) if slot.first >= first]
            ended = series_of(self.config).end is not None and until > dt.date.fromisoformat(
                series_of(self.config).end or ""
            )
            if len(slots) >= self.many or ended or until.year > first.year + MAX_YEARS_AHEAD:
                return slots[: self.many]
            until += step


def _request(
    plan: PlannedRelease, last: dt.date, periods: int, strategy: str, tables: Mapping[str, TableNoiseCost]
) -> str:
    """What the ledger knows a span by: all that is public and decides what is measured."""
    assert plan.slot is not None
    series, data = series_of(plan.config), plan.config.data
    paid = {name: [t.law.name, str(t.law.scale), str(t.amount)] for name, t in tables.items()}
    whose = [data.id, data.riders, series.name, series.version, shape_of(plan.features)]
    covers = _covers(
        plan, plan.slot.first, last
    ).fields()  # another unit or calendar is another price, and never paid by this charge
    stated = ["running", *whose, covers, periods, strategy, paid]
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def charges_for(plan: PlannedRelease, place: PlaceInSpan, ledger: Ledger) -> list[dict[str, Any]]:
    """What has to be reserved before a release of the span is: the whole span the first time, and sums that are drawn again."""
    if all(c.request != place.span.request for c in ledger.charges()):
        return [_span_charge(plan, place, ledger.currency)]
    return [_redraw_charge(plan, place)] if _may_have_been_drawn(plan, place, ledger) else []


def _span_charge(plan: PlannedRelease, place: PlaceInSpan, currency: PrivacyMeasure) -> dict[str, Any]:
    """The charge of a span. Where the ledger counts ρ and the noise costs ε, what a person does is a group like any other."""
    span, paid_in = place.span, place.span.currency
    covers = _covers(plan, span.first, place.last)
    if currency == paid_in:
        covers = replace(covers, strategy=span.strategy, periods=span.periods)
    return {
        "request": span.request,
        paid_in: sum((t.amount for t in span.tables.values()), Fraction(0)),
        "what": RUNNING_TOTALS,
        "covers": covers,
        "part": _part(plan, f"{span.first}..{place.last}"),
    }


def _redraw_charge(plan: PlannedRelease, place: PlaceInSpan) -> dict[str, Any]:
    """One more draw of the sums that end with this release; in whichever release of the span a person is, it costs no more than this."""
    assert plan.slot is not None
    amount = cost_of_redraw(place.span, place.number)
    return {
        "request": f"{place.span.request}:{place.number}",
        place.span.currency: amount,
        "what": REDRAWN_SUMS,
        "covers": _covers(plan, place.span.first, plan.slot.last),
        "part": _part(plan, plan.slot.period),
    }


def _may_have_been_drawn(plan: PlannedRelease, place: PlaceInSpan, ledger: Ledger) -> bool:
    """Whether a run that died may have drawn the same sums: it had charged a release since the last one of the span was made."""
    series = series_of(plan.config)
    since = {done.charge.id for done in place.earlier}
    later: list[Charge] = []
    for charge in charges_of(ledger, series.name, plan.dataset):
        later = [] if charge.id in since else [*later, charge]
    lost = {charge.id for charge in ledger.unfinished()}
    inside = [c for c in later if c.covers and c.covers.last and c.covers.last >= place.span.first]
    return any(charge.id in lost for charge in inside)


def _covers(plan: PlannedRelease, first: dt.date, last: dt.date) -> ChargeScope:
    return ChargeScope.of_releases(plan.unit, first, last, series_of(plan.config).calendar)


def _part(plan: PlannedRelease, period: str) -> SeriesPart:
    series = series_of(plan.config)
    return SeriesPart(series.name, series.version, period, RUNNING_TOTALS, shape_of(plan.features))


def check_fits_caps(plan: PlannedRelease, place: PlaceInSpan) -> None:
    """Refuse a span that does not fit together with its first release, before either is charged."""
    account = plan.account
    if Ledger.started(account.path):
        with Ledger.view(account.path) as ledger:
            terms, before = charges_for(plan, place, ledger), ledger.charges()
    else:
        terms, before = [_span_charge(plan, place, account.cap.currency)], ()
    span = [_priced(account.cap.currency, **one) for one in terms]
    release = Charge("", plan.request, account.charge, "", "", "", plan.covers)
    with plan.config.source.at("series", "running"):
        check_together(account.caps, before, [*span, release] if span else [])


def _priced(
    currency: PrivacyMeasure,
    request: str,
    covers: ChargeScope,
    what: str,
    part: SeriesPart,
    **price: Fraction,
) -> Charge:
    if "rho" in price:
        amount = Amount.charge_rho(price["rho"])
    else:
        amount = Amount.charge(price["epsilon"], currency=currency)
    return Charge("", request, amount, what, "", "", covers, part)


# Price and precision of running totals, before anything is charged


WINDOW_DAYS = (7, 30, 365)  # days in a row of which the price is shown
PERIOD_NAMES = {"daily": "day", "weekly": "week", "monthly": "month"}


def running_lines(plan: PlannedRelease) -> list[str]:
    """Nothing where the configuration keeps no running totals."""
    section = None if plan.config.series is None else declared(plan)
    if section is None:
        return []
    mechanism = plan.mechanism
    assert is_modelled(mechanism)
    name, answers = strategy_of(plan, section), {a.feature: a for a in mechanism.answers()}
    series = series_of(plan.config)
    periods = periods_of(series)
    sums = STRATEGIES[name](periods)
    amounts = {table: section.share * answers[table].share for table in section.tables}
    total, symbol = sum(amounts.values(), Fraction(0)), SYMBOLS[mechanism.currency]
    price = [
        f"{days} days in a row {_factor_text(times)} times as much"
        for days, times in _window_prices(plan, name, periods)
    ]
    more = f" A person pays for {', for '.join(price)}." if price else ""
    paid = table_noise_costs(mechanism, amounts, sums)
    rows = [_running_row(table, sums, paid[table].law, answers[table].law) for table in section.tables]
    charge_line = (
        f"Before the first release {symbol} = {float(total):.6g} is charged for a span of {periods:,} releases, by the {name}: for one "
        f"period of the unit, beside what each release costs.{more}"
    )
    one = PERIOD_NAMES[series.calendar]
    head = ("table", f"a {one}, ±", "the total of the span, ±", f"{one}s added up, ±")
    return [
        charge_line,
        "",
        *aligned([head, *rows], right=(1, 2, 3)),
        "",
        f"± is a standard deviation in {counted_noun(plan.universe).many}.",
    ]


def _window_prices(plan: PlannedRelease, strategy: str, periods: int) -> Iterator[tuple[int, Fraction]]:
    """For windows that the span has room for: how many times the price of one period of the unit they cost at most, as a ledger would say."""
    series, currency = series_of(plan.config), plan.mechanism.currency
    first = dt.date.fromisoformat(series.start)
    last = first
    for _ in range(periods):
        last = last_of(series.calendar, last) + dt.timedelta(days=1)
    covers = ChargeScope.of_releases(plan.unit, first, last - dt.timedelta(days=1), series.calendar)
    covers = replace(covers, strategy=strategy, periods=periods)
    charge = Charge("", "", Amount(NANO_UNITS, 0, currency), "", "", "", covers)
    for days in WINDOW_DAYS:
        if days <= (last - first).days:
            yield days, Fraction(window_sums([charge], days).worst()[0].nano, NANO_UNITS)


def _factor_text(factor: Fraction) -> str:
    return f"{float(factor):,.0f}" if factor >= 100 else f"{float(factor):.3g}"


def _running_row(
    table: str, sums: Strategy, rows: NoiseDistribution, noise: NoiseDistribution
) -> tuple[str, ...]:
    """The noise of the last day, of the total after it, and of as many days measured one by one."""
    day, periods = noise.variance(), sums.periods
    whole = gls_total(sums, rows.variance(), [day] * periods)
    before = gls_total(sums, rows.variance(), [day] * (periods - 1)) if periods > 1 else None
    variances = whole.less(before).variance, whole.variance, day * periods
    return (table, *(f"{variance**0.5:,.1f}" for variance in variances))
