"""A plan and its ledger: what identifies a release, or the purchase of a max_trips, so that the same one is not paid for twice, and what a purchase leaves
on disk; what the ledger says of a plan, where its release goes, and the state of a whole series. All are only looked at; no row is read.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from cbdp.config import Config, DataSection, UnitSection
from cbdp.config.sections import PrivateQuantileSection, format_parts
from cbdp.errors import InputError
from cbdp.features import Universe
from cbdp.forecast.calendar import Slot, check_series, due_slots, pending, request_of_slot, series_of
from cbdp.forecast.inputs import check_chosen
from cbdp.forecast.plan import PlannedMechanism
from cbdp.forecast.running import REDRAWN_SUMS
from cbdp.ledger import AccountOwner, Amount, BudgetError, Caps, Charge, ChargeScope, FinishedCharge, Ledger
from cbdp.ledger.charges import amount_charged, measure_of
from cbdp.ledger.windows import PrivacyStatement, WorstCase, privacy_statement, window_text
from cbdp.parts import settings_of
from cbdp.privacy.accounting import Cost, DPCost, ZCDPCost, single_costs
from cbdp.privacy.noise import PrivacyMeasure
from cbdp.privacy.unit import MAX_TRIPS_CANDIDATES, RELEASE, Person, PrivateQuantile, Unit
from cbdp.release.files import MANIFEST
from cbdp.release.layout import universe_hash
from cbdp.release.manifest import FORMAT
from cbdp.release.serialization import Recipe, unit_json
from cbdp.release.series import RUNNING_TOTALS
from cbdp.rounding import cost_per_wrong_type
from cbdp.text import aligned
from cbdp.untrusted import read_json
from cbdp_features.calendar import day_dimension

if TYPE_CHECKING:
    from cbdp.config import Config

# What identifies a release, and the purchase of a max_trips


class RecordedMechanism(PlannedMechanism, Protocol):
    """A mechanism whose settings are a recipe."""

    @property
    def recipe(self) -> Recipe: ...
    @property
    def protected(self) -> Unit: ...


class ClockSettings(Protocol):
    """How times are read, as a frozen record of settings."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


# The request of a release
#
# It is a hash of everything public that decides what is released, and one of the trips' whereabouts. An audit compares the first alone, for trips
# may be moved after a release. The output's path, the confidence of intervals and [about] are in neither: to change them costs no ε.


REQUEST_VERSION = 2  # of what is hashed: another number, and no earlier release is recognised
GEOMETRIC = "geometric"  # the law that goes without saying
SETTINGS_STATED_BY_COST = (
    "measured",
    "tables",
    "preset",
)  # what is spent, and the other settings, say the same
# Of [data]: what is stated by other parts of the request, and what decides no count. All that is not listed counts.
DATA_STATED_ELSEWHERE = (
    "trips",
    "id",
    "columns",
    "timezone",
    "time_format",
    "holidays",
    "day_starts",
    "stops",
    "stop_columns",
)
DATA_WITHOUT_EFFECT = ("riders", "expected_trips", "expected_filled")


def request_of(asked: str, source: str) -> str:
    return f"{asked}:{source}"


def public_request_of(
    config: Config, columns: Mapping[str, str], clock: ClockSettings, mechanism: RecordedMechanism
) -> str:
    """A hash of all that is public and decides what is released; `columns` are those of the dimensions."""
    features, cost = mechanism.features, mechanism.claim().cost
    stated = {
        "version": REQUEST_VERSION,
        "dataset": config.data.id,
        "reading": _reading(config.data, columns),
        "clock": _clock(clock),
        "universe": universe_hash(features.universe),
        "features": {name: list(feature.by) for name, feature in features.features.items()},
        "recipe": _recipe(mechanism),
        "unit": [str(mechanism.protected), getattr(mechanism.protected, "column", None)],
        "spends": [_spend(p) for p in single_costs(cost)],
        "cost": [str(cost.epsilon), str(cost.delta)],
    }
    law = getattr(mechanism, "law", GEOMETRIC)
    if law != GEOMETRIC:
        stated["law"] = law
    if mechanism.recipe.public:
        stated["public"] = dict(mechanism.recipe.public)
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _spend(part: DPCost | ZCDPCost) -> list[str]:
    if isinstance(part, ZCDPCost):
        return [part.what, "rho", str(part.rho)]
    return [part.what, str(part.epsilon), str(part.delta)]


def _clock(clock: ClockSettings) -> dict[str, str]:
    """What is set; of settings that older versions had not, only what is not the default, so that their requests stay the same."""
    newer = {f.name for f in fields(clock) if f.name == "day_starts" and getattr(clock, f.name) == f.default}
    return {f.name: repr(getattr(clock, f.name)) for f in fields(clock) if f.name not in newer}


def _reading(data: DataSection, columns: Mapping[str, str]) -> dict[str, Any]:
    """How rows are read. The column of persons counts where persons are protected, and then the unit names it.

    Settings that are not made are left out, so that one that an older version had not leaves its requests as they were.
    """
    others = {role: column for role, column in data.columns.items() if role not in ("person", "day")}
    further = {
        f.name: repr(getattr(data, f.name))
        for f in fields(data)
        if f.name not in DATA_STATED_ELSEWHERE + DATA_WITHOUT_EFFECT
    }
    unset = {f.name: repr(f.default) for f in fields(data) if f.default is not MISSING}
    unset |= {f.name: repr(f.default_factory()) for f in fields(data) if f.default_factory is not MISSING}
    stated = {name: value for name, value in further.items() if value != unset.get(name)}
    return {"columns": others | dict(columns), **stated}


def _recipe(mechanism: RecordedMechanism) -> dict[str, Any]:
    """The recipe without what can be spelt in several ways and is said by what is spent."""
    stated = mechanism.recipe.settings
    settings = {n: stated[n] for n in settings_of(type(mechanism)) if n not in SETTINGS_STATED_BY_COST}
    if settings.get("rounding") == "few":  # its price is by the budget's name, beyond what that spends
        settings["rounding"] = ["few", cost_per_wrong_type(getattr(mechanism, "budget", None))]
    return {"mechanism": mechanism.name, "settings": settings}


# A max_trips that is bought (`cbdp choose`): a charge of its own, whose ε is part of the release's


MAX_TRIPS_UNTIL_BOUGHT = 10  # trips of a person that `cbdp check` goes by until max_trips is bought


def requested_quantile(config: Config) -> PrivateQuantile | None:
    """The purchase that a configuration asks for."""
    unit = config.privacy.unit
    max_trips = unit.max_trips if isinstance(unit, UnitSection) else None
    if not isinstance(max_trips, PrivateQuantileSection):
        return None
    with config.source.at("privacy", "unit", "max_trips"):
        return PrivateQuantile(max_trips.quantile, max_trips.epsilon)


def refuse_in_series(config: Config) -> None:
    """A series has one max_trips for all its releases, and most of their rows are still to come."""
    if config.series is not None and requested_quantile(config) is not None:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            "a series states its max_trips before its rows are there: buy it with the trips of a past period, by `cbdp choose` with a "
            "configuration without [series] that names the same ledger, and write the number here",
        )


def request_of_choice(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: object, unit: Person
) -> str:
    """A hash of all that is public and decides what is bought."""
    assert unit.bought is not None
    needed = {*universe.dimensions, *(["day"] if unit.per != RELEASE else [])}
    stated = {
        "dataset": config.data.id,
        "columns": {name: column for name, column in columns.items() if name in needed},
        "clock": [repr(clock)],
        "universe": universe_hash(universe),
        "person": [unit.column, unit.per, unit.apart, day_dimension(universe.dimensions)],
        "quantile": str(unit.bought.quantile),
        "epsilon": str(unit.bought.epsilon),
    }
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"max_trips:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def place_of_choice(config: Config, request: str) -> Path:
    """The public file that says what was bought, beside the ledger."""
    ledger = config.path(config.privacy.ledger)
    return ledger.with_name(f"{ledger.stem}-max_trips-{request.partition(':')[2][:16]}.json")


def bought_max_trips(config: Config, request: str) -> int | None:
    """What was bought before; None: nothing yet. A file that is not the ledger's is refused."""
    ledger = config.path(config.privacy.ledger)
    if not (ledger.parent.is_dir() and Ledger.started(ledger)):
        return None
    with Ledger.view(ledger) as view:
        done = view.finished(request)
    if done is None:
        return None
    place = Path(done.path)
    text = place.read_bytes() if place.is_file() else b""
    if hashlib.sha256(text).hexdigest() != done.sha256:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            f"max_trips was bought, and {str(place)!r} is not what was written then: restore it",
        )
    return max_trips_in(json.loads(text))


def max_trips_in(stated: Mapping[str, Any]) -> int:
    most = stated["max_trips"]
    if most not in MAX_TRIPS_CANDIDATES:
        raise InputError(f"max_trips is {most!r}, which is no candidate: restore the file")
    return int(most)


def with_bought_max_trips(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: object, unit: Person
) -> Person:
    """The unit with the max_trips that was bought, or with a guess."""
    if unit.bought is None:
        return unit
    most = bought_max_trips(config, request_of_choice(config, universe, columns, clock, unit))
    return unit if most is None else replace(unit, max_trips=most)


def is_unbought(
    config: Config, universe: Universe, columns: Mapping[str, str], clock: object, unit: Unit
) -> bool:
    """Whether the unit's max_trips is a guess, because nothing was bought yet."""
    if not isinstance(unit, Person) or unit.bought is None:
        return False
    return bought_max_trips(config, request_of_choice(config, universe, columns, clock, unit)) is None


def after_purchase(config: Config, unit: Unit) -> Config:
    """The configuration with what is left for the tables; the ledger's cap stays that of the whole."""
    if not isinstance(unit, Person) or unit.bought is None:
        return config
    privacy, paid = config.privacy, unit.bought.epsilon
    whole = privacy.epsilon if privacy.rho is None else privacy.rho
    assert whole is not None
    left = whole - (paid if privacy.rho is None else paid**2 / 2)
    if left <= 0:
        raise config.source.error(
            ("privacy", "unit", "max_trips"),
            f"max_trips costs ε = {paid}, and the release has no more than that: pay less, or spend more",
        )
    cap: Any = privacy.cap if privacy.cap is not None else whole
    spends: dict[str, Any] = {"epsilon": left} if privacy.rho is None else {"rho": left}
    return replace(config, privacy=replace(privacy, cap=cap, **spends))


@dataclass(frozen=True)
class Choice:
    """What was bought, where that is written, and whether this run paid for it."""

    max_trips: int
    path: Path
    fresh: bool


def noted_choice(book: Ledger, request: str, place: Path) -> Choice | None:
    """What another run bought meanwhile, or one that died before its note."""
    done = book.finished(request)
    if done is None:
        charge = _unnoted(book, request, place)
        if charge is None:
            return None
        book.released(charge, hashlib.sha256(place.read_bytes()).hexdigest(), place)
    return Choice(max_trips_in(json.loads(place.read_bytes())), place, fresh=False)


def _unnoted(book: Ledger, request: str, place: Path) -> Charge | None:
    if not place.is_file():
        return None
    head = json.loads(place.read_bytes())["ledger"]["head"]
    return next((c for c in book.unfinished(request) if c.head == head), None)


def statement_of_choice(unit: Person, most: int, ledger: dict[str, Any]) -> bytes:
    """What anybody may read: what was drawn, from which candidates, for what price."""
    whose = unit_json(unit)
    stated = {
        "max_trips": most,
        "candidates": [MAX_TRIPS_CANDIDATES[0], MAX_TRIPS_CANDIDATES[-1]],
        "bought": whose.get("bought"),
        "column": unit.column,
        "per": unit.per,
        "apart": unit.apart,
        "mechanism": "exponential mechanism on a quantile of how many trips persons have",
        "ledger": ledger,
    }
    return (json.dumps(stated, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def write_choice(place: Path, text: bytes) -> None:
    """Whole or not at all, and on disk."""
    part = place.with_name(f"{place.name}.part")
    with part.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)


# What the ledger says


MAX_CONFIDENCE = 0.999  # of intervals; more takes too many simulations


@dataclass(frozen=True)
class Account:
    """What the ledger says of this request. It was only read."""

    path: Path
    exists: bool
    owner: AccountOwner
    caps: Caps  # of the ledger, or those it would be created with
    spent: Amount
    charge: Amount  # what this release costs
    unpublished: Amount = field(
        default_factory=Amount
    )  # of what was spent: on runs that were never published
    forgotten: str | None = None  # an earlier release that the ledger ought to hold and does not
    finished: FinishedCharge | None = None  # an identical request that was released: it costs nothing again
    unfinished: tuple[Charge, ...] = ()  # identical requests that were charged and never released

    @property
    def cap(self) -> Amount:
        return self.caps.total

    @property
    def left(self) -> Amount:
        return self.cap - self.spent

    @property
    def after(self) -> Amount:
        """What is left when this release is made."""
        return self.left if self.finished else self.left - self.charge


def account_of(
    config: Config,
    mechanism: PlannedMechanism,
    request: str,
    covers: ChargeScope | None = None,
    *,
    must_fit: bool = True,
) -> Account:
    """What the ledger says of a request. One that does not fit is refused, unless somebody only looks for what would."""
    path = config.path(config.privacy.ledger)
    owner = AccountOwner.of(config.data.id, config.data.riders)
    cost = mechanism.claim().cost
    with config.source.at("privacy", "ledger"):
        started = path.parent.is_dir() and Ledger.started(path)
    if started:
        account = _account_of_ledger(config, path, owner, request, cost, covers, must_fit=must_fit)
    else:
        account = _account_of_new_ledger(config, path, owner, cost)
    charge = account.charge
    if must_fit and not _costs_nothing(config, account) and not charge.within(account.left):
        with config.source.at("privacy", "epsilon"):
            raise BudgetError(f"a charge of {charge} does not fit: {_ways_out(config, account)}")
    return account


def _costs_nothing(config: Config, account: Account) -> bool:
    """Whether nothing will be charged: the release is there."""
    return account.finished is not None or _folder_may_exist(config, account)


def missing_ledger(config: Config, account: Account) -> str:
    """What to say where there is no ledger, and what to do."""
    state = "is an empty file" if account.path.exists() else "does not exist"
    never = "no trips of %s were ever released" if account.owner.riders else "%s was never released"
    return (
        f"the ledger {str(account.path)!r} {state}. If {never % account.owner}, create it: cbdp ledger create "
        f"{shlex.quote(str(config.source.path))}. Otherwise restore it: a new one would forget what was spent"
    )


def _ways_out(config: Config, account: Account) -> str:
    """What is left, where the rest has gone, and what can be done. Lowering ε is not the only way."""
    lost = (
        ""
        if not account.unpublished.nano
        else f" ({account.unpublished} was spent on runs that were never published, and stays spent)"
    )
    paid = "rho" if config.privacy.rho is not None else "epsilon"
    less = f"a smaller {paid} or delta" if config.privacy.delta is not None else f"a smaller {paid}"
    left = f"{account.left} of the cap {account.cap} is left for {account.owner}{lost}"
    if not account.left.nano:
        asked = "What was released can be asked further questions at no cost (cbdp ask). "
        if account.unpublished == account.spent:
            asked = "Nothing was published for it: noise may have been drawn and lost, so it cannot be drawn again for free. "
        return f"{left}. {asked}To spend more is a new promise to the riders, and takes a new ledger"
    if not account.exists and account.forgotten is None:  # nothing is promised yet
        return f"{left}. Release less, by {less}; or raise cap: it is fixed only when the ledger is created"
    return (
        f"{left}. Release less, by {less}; or decide that more may be spent: that is a new promise to the riders, "
        "and takes a new ledger"
    )


def _account_of_new_ledger(config: Config, path: Path, owner: AccountOwner, cost: Cost) -> Account:
    """The account of a ledger that has yet to be created."""
    privacy = config.privacy
    currency = _currency(config, cost)
    with config.source.at("privacy", "currency"):
        charge = amount_charged(cost, currency)
    with config.source.at("privacy", "cap"):
        if privacy.cap_delta is not None and privacy.cap is None:
            raise InputError(f"cap_delta is {privacy.cap_delta} without a cap: give both or none")
        if privacy.cap is None and config.series is not None:
            raise InputError(
                "a series needs a cap: say how much its releases may cost, like "
                "cap = { per_day = 1, per_30_days = 30, per_year = 365 }, or one number for all of them together"
            )
        delta = charge.delta if privacy.cap_delta is None else privacy.cap_delta
        caps = Caps(charge) if privacy.cap is None else Caps.of(privacy.cap, delta, currency=currency)
    with config.source.at("privacy", "ledger"):
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {str(path.parent)!r} for the ledger: create it first")
    lost = charge_missing_from_ledger(config.path(config.output.path), owner, None)
    return Account(path, False, owner, caps, Amount(currency=currency), charge, forgotten=lost)


def _currency(config: Config, cost: Cost) -> PrivacyMeasure:
    """What a new ledger counts."""
    stated = config.privacy.currency
    return measure_of(cost) if stated is None else cast("PrivacyMeasure", stated)


def _account_of_ledger(
    config: Config,
    path: Path,
    owner: AccountOwner,
    request: str,
    cost: Cost,
    covers: ChargeScope | None,
    *,
    must_fit: bool,
) -> Account:
    with config.source.at("privacy", "ledger"), Ledger.view(path) as ledger:
        ledger.verify()
        if ledger.owner != owner:
            keys = ("data", "riders" if owner.riders else "id")
            refusal = ledger.owner.refusal_of(owner)
            raise config.source.error(keys, f"the ledger {str(path)!r} {refusal}")
        _check_currency(config, ledger)
        account = Account(
            path,
            True,
            owner,
            ledger.caps,
            ledger.spent,
            amount_charged(cost, ledger.currency),
            ledger.unpublished,
            charge_missing_from_ledger(config.path(config.output.path), owner, ledger),
            ledger.finished(request),
            tuple(ledger.unfinished(request)),
        )
        _check_cap(config, account.caps)
        if must_fit and account.charge.within(account.left) and not _costs_nothing(config, account):
            with config.source.at("privacy", "cap"):
                ledger.would_refuse(request, account.charge, covers)
    return account


def _check_currency(config: Config, ledger: Ledger) -> None:
    stated = config.privacy.currency
    if stated not in (None, ledger.currency):
        raise config.source.error(
            ("privacy", "currency"),
            f"the ledger counts {ledger.currency}, not {stated}: that was fixed when it was created; "
            f'write currency = "{ledger.currency}", or name another ledger',
        )


def _check_cap(config: Config, caps: Caps) -> None:
    privacy = config.privacy
    if privacy.cap is None:
        return
    with config.source.at("privacy", "cap"):
        delta = caps.total.delta if privacy.cap_delta is None else privacy.cap_delta
        asked = Caps.of(privacy.cap, delta, currency=caps.total.currency)
        if asked != caps:
            raise InputError(
                f"the ledger's cap is {caps}, not {asked}: it was fixed when the ledger was created, write {caps}"
            )


def _folder_may_exist(config: Config, account: Account) -> bool:
    """Whether an earlier run of this request may have got as far as writing its folder."""
    return bool(account.unfinished) and config.path(config.output.path).exists()


def output_of(config: Config, account: Account) -> Path:
    """The folder that the release is written to."""
    path = config.path(config.output.path)
    keys = ("output", "path")
    for n, name in enumerate(config.output.export):
        with config.source.at("output", "export", n):
            check_chosen(format_parts(), name)
    if config.output.confidence > MAX_CONFIDENCE:
        raise config.source.error(
            ("output", "confidence"),
            f"confidence is {config.output.confidence}: give at most {MAX_CONFIDENCE}, more takes too many simulations",
        )
    folder = path.parent
    if config.series is not None and not folder.exists():  # a run of the series makes the last folder itself
        folder = folder.parent
    if not folder.is_dir():
        raise config.source.error(
            keys, f"there is no folder {str(folder)!r} for the release: create it first"
        )
    charged = account.finished is not None or account.unfinished
    if (path.exists() or path.is_symlink()) and not charged:
        if account.forgotten is not None:
            raise config.source.error(("privacy", "ledger"), account.forgotten)
        raise config.source.error(
            keys, f"the output {str(path)!r} exists already: choose another path, nothing is overwritten"
        )
    return path


# Witnesses: earlier releases beside the output. A ledger that lacks their charges is an old copy, was cut, or is another
#
# A manifest states the head, the id and the owner of the ledger that its release was charged to. Whoever publishes again for the same owner must use a ledger
# that contains those heads. Manifests from before the owner was stated are no witnesses: they may be of other data sets. Nor are releases in other folders.


def charge_missing_from_ledger(output: Path, owner: AccountOwner, ledger: Ledger | None) -> str | None:
    """What to say if a release beside the output, or in its place, was charged to the owner and the ledger does not know it.

    Without a ledger: if one was.
    """
    for folder, stated in _releases_charged_to(output, owner):
        if ledger is None:
            return (
                f"the release {str(folder)!r} was charged to a ledger of {owner} (id {stated.get('id')}): restore that ledger. "
                f"A new one would forget what was spent{_move_advice(folder)}"
            )
        if not ledger.contains(str(stated["head"])):
            return _unknown_charge(folder, owner, ledger, stated)
    return None


def _unknown_charge(folder: Path, owner: AccountOwner, ledger: Ledger, stated: Mapping[str, object]) -> str:
    charge = f"the release {str(folder)!r} was charged to"
    if stated.get("id") == ledger.id:
        return (
            f"{charge} the ledger {str(ledger.path)!r}, which does not hold that charge any more: it is an old copy, or its end "
            "was cut off; restore the newest copy"
        )
    return (
        f"{charge} another ledger of {owner} (id {stated.get('id')}, not {ledger.id}): restore that one to "
        f"{str(ledger.path)!r}{_move_advice(folder)}"
    )


def _move_advice(folder: Path) -> str:
    return (
        f". If a new ledger is meant, its cap comes on top of what was spent before: move {str(folder)!r} to another "
        "folder first"
    )


def _releases_charged_to(output: Path, owner: AccountOwner) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Releases that were charged to this owner, with what their manifests say of the ledger."""
    for manifest in sorted(output.absolute().parent.glob(f"*/{MANIFEST}")):
        stated = _ledger_of(manifest)
        hidden = manifest.parent.name.startswith(".")  # half written
        if not hidden and stated.get("head") and stated.get("owner") == owner.json():
            yield manifest.parent, stated


def _ledger_of(manifest: Path) -> Mapping[str, object]:
    try:
        about = manifest.stat()
    except OSError:
        return {}
    return _read_ledger_of(manifest, about.st_mtime_ns, about.st_size, about.st_ino)


@lru_cache(4096)  # of a series there are many, and every release looks at all of them
def _read_ledger_of(manifest: Path, changed: int, size: int, identity: int) -> Mapping[str, object]:  # noqa: ARG001
    try:
        document = read_json(manifest)
    except (OSError, ValueError):
        return {}
    ledger = (
        document.get("ledger") if isinstance(document, dict) and document.get("format") == FORMAT else None
    )
    return ledger if isinstance(ledger, dict) else {}


# The state of a series: what is released and what is due, what was spent, and what all of it costs one person


MAX_LISTED_RELEASES = 5  # releases that a line names


@dataclass(frozen=True)
class Status:
    """A series as its ledger and its folders show it."""

    config: Config = field(repr=False)
    until: dt.date
    released: tuple[tuple[Slot, Path], ...] = ()
    due: tuple[Slot, ...] = ()  # and not made
    lost: int = 0  # charges of the series whose release was never published
    spent: Amount | None = None  # None: there is no ledger yet
    caps: Caps | None = None
    person: PrivacyStatement | None = None  # by all that was charged: for the curator
    missing: tuple[Path, ...] = ()  # made, and no longer where they were put
    spans: tuple[Charge, ...] = ()  # what running totals have cost, each for a whole span
    noted: Mapping[Path, str] = field(
        default_factory=dict, repr=False
    )  # SHA-256 of the manifest of each release that was made
    published: PrivacyStatement | None = (
        None  # `person` by what published releases have charged: it does not tell which runs died
    )

    def lines(self) -> Iterator[str]:
        series = series_of(self.config)
        yield (
            f"series {series.name!r}, version {series.version}: {series.calendar} from {series.start}"
            f"{f' to {series.end}' if series.end else ''}; by the end of {self.until} {_due(len(self.released) + len(self.due))}, "
            f"{len(self.released)} {'is' if len(self.released) == 1 else 'are'} made"
        )
        if self.due:
            yield f"to be made: {_listed([slot.label for slot in self.due])}"
        if self.lost:
            yield f"{self.lost} charges went to runs that were never published; they stay spent"
        if self.missing:
            yield f"no longer in their place: {_listed([str(path) for path in self.missing])}"
        if self.spent is None or self.caps is None or self.person is None:
            yield "there is no ledger yet: nothing was spent"
            return
        for span in self.spans:
            yield f"running totals of {span.part and span.part.period.replace('..', ' to ')} are paid for: {span.amount}"
        yield f"spent {self.spent}; cap {self.caps}"
        yield ""
        yield from person_lines(self.person, self.caps)


def status_of(config: Config, until: dt.date) -> Status:
    check_series(config)
    slots = due_slots(config, until)
    path = config.path(config.privacy.ledger)
    if not path.parent.is_dir() or not Ledger.started(path):
        return Status(config, until, due=tuple(pending(config, slots)))
    with config.source.at("privacy", "ledger"), Ledger.view(path) as ledger:
        ledger.verify()
        return _seen(config, until, slots, ledger)


def _seen(config: Config, until: dt.date, slots: Sequence[Slot], ledger: Ledger) -> Status:
    name = series_of(config).name
    finished = {slot: ledger.finished(request_of_slot(config, slot)) for slot in slots}
    released = tuple((slot, Path(done.path)) for slot, done in finished.items() if done is not None)
    return Status(
        config,
        until,
        released,
        tuple(pending(config, slots)),
        sum(
            c.part is not None and c.part.series == name and c.part.stage != RUNNING_TOTALS
            for c in ledger.unfinished()
        ),
        ledger.spent,
        ledger.caps,
        privacy_statement(ledger.charges()),
        tuple(place for _, place in released if not (place / MANIFEST).is_file()),
        tuple(c for c in ledger.charges() if c.what == RUNNING_TOTALS and c.part and c.part.series == name),
        {Path(done.path): done.sha256 for done in finished.values() if done is not None},
        privacy_statement(published_charges(ledger)),
    )


def published_charges(ledger: Ledger) -> list[Charge]:
    """Charges of what anybody can see. Those of runs that died, and of sums that were drawn again for them, paid for noise that nobody saw."""
    lost = {charge.id for charge in ledger.unfinished()}
    return [charge for charge in ledger.charges() if charge.id not in lost and charge.what != REDRAWN_SUMS]


def person_lines(person: PrivacyStatement, caps: Caps) -> Iterator[str]:
    """The worst case for one person, window by window."""
    yield "what all releases of this ledger together cost one person at most (costs of days add up):"
    yield ""
    limits = dict(caps.windows)
    strict = any(worst.strict != worst.amount for worst in person.windows)
    name = "sum" if person.currency == "epsilon" else "ρ"
    rows = [("in any window of", name, *(["strict"] if strict else []), "as (ε, δ)", "cap", "highest from")]
    for worst in person.windows:
        limit = limits.get(worst.days or 0)
        cap = "" if limit is None else str(Amount(limit, 0, person.currency))
        length = "all days together" if worst.days is None else window_text(worst.days)
        sums = [str(worst.amount), *([str(worst.strict)] if strict else [])]
        rows.append((length, *sums, _approximate(worst), cap, str(worst.start or "")))
    yield from aligned(rows, right=range(1, 4 + strict))
    for note in person.notes:
        yield f"note: {note}"


def _approximate(worst: WorstCase) -> str:
    if not worst.delta:
        return f"({worst.shown}, 0)"
    return f"({worst.shown}, {float(worst.delta):.2g})"


def _due(many: int) -> str:
    return "1 release is due" if many == 1 else f"{many} releases are due"


def _listed(names: Sequence[str]) -> str:
    if len(names) <= MAX_LISTED_RELEASES:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_LISTED_RELEASES - 1])}, …, {names[-1]} ({len(names)} in all)"
