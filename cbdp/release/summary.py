"""What a release is, in words: used wherever a release speaks for itself, in its report, its README, notebooks and plots."""

from __future__ import annotations

from cbdp.numbers import amount_text
from cbdp.privacy.accounting import PrivacyGuarantee, readable_epsilon
from cbdp.privacy.unit import RELEASE, Person, Unit
from cbdp.release.release import Release
from cbdp.release.views import (
    PLACE_NAMES,
    TAP_DIMENSION,
    TRIP_NOUN,
    Noun,
    Published,
    Roles,
    counted_noun,
    enumerated,
    period_names,
    period_of,
    roles,
)
from cbdp.text import html_text, message, printable
from cbdp_features.tables import html_table


def title_of(release: Release, parts: Roles | None = None) -> str:
    """The publisher's title, or what it is."""
    if release.about is not None and release.about.title is not None:
        return release.about.title
    return "Published trips" if (parts or roles(release.features)).ends else "Published counts"


def where_and_when(release: Release) -> str | None:
    """Place and period, as far as they are known."""
    place = None if release.about is None else release.about.place
    return " · ".join(filter(None, [place, period_of(release)])) or None


def total_of(release: Release) -> int:
    """The trips of the coarsest table; of tables that do not agree, this is the best there is."""
    return int(Published(release).grouped().counts)


def contents_text(release: Release, parts: Roles | None = None) -> str:
    """How many trips, between what, over which time.

    >>> import cbdp, numpy as np
    >>> universe = cbdp.Universe(origin=["A", "B"], destination=["A", "B"], time=cbdp.periods("06:00", "08:00", "1h"))
    >>> mechanism = cbdp.Laplace(cbdp.FeatureDag(universe, []), epsilon=1)
    >>> print(contents_text(mechanism.simulate(np.full(8, 9), seed=0)))
    73 trips between 2 stops, 06:00–08:00 in 2 periods
    """
    parts, total = parts or roles(release.features), total_of(release)
    universe = release.features.universe
    noun = counted_noun(universe)
    if parts.ends is not None:
        ends = [len(universe.dimension(end)) for end in parts.ends]
        between = (
            f"between {ends[0]:,} stops" if ends[0] == ends[1] else f"from {ends[0]:,} to {ends[1]:,} stops"
        )
    else:
        between = _of_one_place(release, parts.time)
    when = f", {_span(release, parts.time)}" if parts.time is not None else ""
    return f"{noun.number(total)} {between}".strip() + when


def _of_one_place(release: Release, time: str | None) -> str:
    """Where, and by what else, where nothing leads from one place to another."""
    universe = release.features.universe
    many = {n: len(d) for n, d in universe.dimensions.items() if n != time}
    places = [n for n in many if is_place(release, n)][:1]
    kinds = universe.dimensions[TAP_DIMENSION].values if TAP_DIMENSION in many else ()
    taps = f"({enumerated([str(v) for v in kinds])}) " if len(kinds) > 1 else ""
    where = [f"at {many[n]:,} stop{'s' if many[n] > 1 else ''}" for n in places]
    others = [f"{n} ({size:,} values)" for n, size in many.items() if n not in (*places, TAP_DIMENSION)]
    return taps + " ".join([*where, *([f"by {enumerated(others)}"] if others else [])])


def is_place(release: Release, dimension: str) -> bool:
    """Whether a dimension's values are stops: by its name, or because the places know them."""
    if dimension in PLACE_NAMES:
        return True
    stop_ids = set() if release.places is None else {str(stop) for stop in release.places.ids}
    return bool(stop_ids) and stop_ids.issuperset(
        map(str, release.features.universe.dimension(dimension).values)
    )


def _span(release: Release, time: str) -> str:
    """The times that the trips are from."""
    dimension = release.features.universe.dimension(time)
    names = period_names(dimension)
    if dimension.edges is None:
        return f"in {len(names)} periods" if len(names) > 1 else f"in one period ({names[0]})"
    first, last = names[0].split("–")[0], names[-1].split("–")[-1]
    return f"{first}–{last} in {len(names)} periods" if len(names) > 1 else f"{first}–{last}"


def protected_text(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What one ε is for.

    >>> protected_text(Person("card", 4, per="day"))
    'day of a person'
    """
    if not isinstance(unit, Person):
        return noun.one
    return "person" if unit.per == RELEASE else f"{unit.per} of a person"


def epsilon_text(claim: PrivacyGuarantee) -> str:
    """ε, or nothing where nothing is promised.

    >>> from fractions import Fraction
    >>> from cbdp.privacy.accounting import DPCost
    >>> from cbdp.privacy.unit import Trip
    >>> epsilon_text(PrivacyGuarantee(Trip(), DPCost("total", Fraction(1, 2))))
    'ε = 0.5'
    """
    if not claim.holds:
        return "none"
    rho = claim.cost.currency == "rho"
    return f"ε = {readable_epsilon(claim.cost.epsilon) if rho else amount_text(claim.cost.epsilon)}"


def delta_rho_text(claim: PrivacyGuarantee) -> str:
    """What belongs to ε where a promise has more than that: its δ, and its ρ."""
    delta = f", δ = {float(claim.cost.delta):.2g}" if claim.cost.delta else ""
    return delta + (f" (ρ = {amount_text(claim.cost.rho)})" if claim.cost.currency == "rho" else "")


def guarantee_text(release: Release) -> str:
    """The protection in a line, as it stands on plots and in notebooks."""
    claim = release.promise
    if not claim.holds:
        return (
            "a simulation: it protects nobody"
            if not release.secure
            else "no differential privacy is promised"
        )
    return f"differentially private, {epsilon_text(claim)}{delta_rho_text(claim)} for each {protected_text(claim.unit, counted_noun(release.features.universe))}"


def bounding_text(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """Which trips count, where not all trips of a person do; empty otherwise.

    >>> bounding_text(Person("card", 4, per="day"))
    'at most 4 trips of each person a day are counted'
    """
    if not isinstance(unit, Person):
        return ""
    be = "is" if unit.max_trips == 1 else "are"
    return f"at most {noun.number(unit.max_trips)} of each person{unit.period} {be} counted"


def left_out(unit: Unit, noun: Noun = TRIP_NOUN) -> str:
    """What numbers are about where not all trips of a person count: what every output says it with; empty otherwise.

    >>> left_out(Person("card", 4, per="day"))
    'At most 4 trips of each person a day are counted, chosen at random. Others were left out before anything was measured, so counts and intervals are about the trips that are counted, not about ridership: the true numbers of trips may be higher, and no interval includes that.'
    """
    if not isinstance(unit, Person):
        return ""
    only, each = (
        bounding_text(unit, noun),
        "" if unit.apart is None else f", at most one in each {unit.apart}",
    )
    return (
        f"{only[0].upper()}{only[1:]}, chosen at random{each}. Others were left out before anything was measured, so counts and intervals are about the "
        f"{noun.many} that are counted, not about ridership: the true numbers of {noun.many} may be higher, and no interval includes that."
    )


# What a notebook shows of a release


def release_html(release: Release) -> str:
    """A few lines and the list of tables, in the notebook's own colours."""
    unit = release.promise.unit
    lines = [
        where_and_when(release),
        f"{contents_text(release)}.",
        f"{_capitalised(guarantee_text(release))}.",
        f"{_capitalised(bounding_text(unit, counted_noun(release.features.universe)))}: the true numbers may be higher."
        if isinstance(unit, Person)
        else None,
    ]
    blocks = "".join(f"<div>{html_text(line)}</div>" for line in lines if line)
    return f'<div><div style="font-size:1.2em;font-weight:600">{html_text(title_of(release))}</div>{blocks}{_tables(release)}</div>'


def release_text(release: Release) -> str:
    """The same in three lines, for a terminal."""
    names = ", ".join(map(printable, _published_line(release)))
    setting = where_and_when(release)
    head = f"{title_of(release)} ({setting})" if setting else title_of(release)
    return message(f"{printable(head)}\n{contents_text(release)}; {guarantee_text(release)}\ntables: {names}")


def _published_line(release: Release) -> list[str]:
    return [name for name in release.features.features if name in release.tables or not release.tables]


def _tables(release: Release) -> str:
    features = [release.features.features[name] for name in _published_line(release)]
    columns: dict[str, list[object]] = {
        "table": [f.name for f in features],
        "counts by": [enumerated(f.by) or "all trips together" for f in features],
        "counts": [release.features.size(f.name) for f in features],
        "intervals": [
            _confidence_words(release) if f.name in release.intervals else "none" for f in features
        ],
    }
    return html_table(
        "Tables",
        columns,
        ["counts"],
        list(range(len(features))),
        note='release.table("…") shows one; release.ask(…) answers other questions; release.plot.day(), .flows() and .map() draw',
    )


def _confidence_words(release: Release) -> str:
    return f"{100 * (release.confidence or 0.9):g} %"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
