"""What the tables [privacy] and privacy.unit may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from cbdp.app.config import choices
from cbdp.app.config.kinds import Either, Exact, Fields, Named, Option, PartName, Text, Whole
from cbdp.privacy.numbers import probability
from cbdp.privacy.unit import PERIODS

CAPS = ("total", "per_day", "per_7_days", "per_30_days", "per_year")


@dataclass(frozen=True)
class BoughtSection:
    """A public max_trips that is found in the trips and paid for, by `cbdp choose`."""

    quantile: Annotated[
        Fraction,
        Option(
            Exact(probability, "a number above 0 and below 1"), "the share of persons that shall lose no trip"
        ),
    ]
    epsilon: Annotated[Fraction, Option(Exact(), "what is paid for it, of the ε of the release")]


@dataclass(frozen=True)
class UnitSection:
    """What is protected, if it is not one trip added or removed."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("person", "trip")
    NEEDS: ClassVar[Mapping[str, str]] = {
        "person": "max_trips",
        "max_trips": "person",
        "per": "person",
        "apart": "person",
    }

    person: Annotated[str | None, Option(Text(), "the column that tells persons apart")] = None
    max_trips: Annotated[
        int | BoughtSection | None,
        Option(
            Either((Whole(), Fields(BoughtSection))),
            "how many trips of each person are counted, chosen at random; or the quantile that `cbdp choose` buys",
        ),
    ] = None
    per: Annotated[
        str | None,
        Option(
            Text(choices=PERIODS),
            "in which period a person's trips are protected together, and at most max_trips counted; by default the release",
        ),
    ] = None
    apart: Annotated[
        str | None,
        Option(
            Text(),
            'a dimension, like "time": at most one trip of a person is counted in each of its values (of each day)',
        ),
    ] = None
    trip: Annotated[
        str | None, Option(Text(choices=("add-remove", "replace")), "how neighbouring data sets differ")
    ] = None


@dataclass(frozen=True)
class PrivacySection:
    """What may be spent, and on what."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("epsilon", "rho")

    epsilon: Annotated[Fraction | None, Option(Exact(), "ε of the whole release")] = None
    rho: Annotated[
        Fraction | None,
        Option(Exact(), 'ρ of the whole release (zero-concentrated privacy), with law = "gaussian"'),
    ] = None
    delta: Annotated[
        Fraction | None,
        Option(
            Exact(probability, "a number of at least 0 and below 1"),
            "δ of the whole release: for mechanisms that skip zeros, and for the law gaussian, where ρ follows from ε and δ; with rho, the δ "
            "at which it is stated, by default 1e-6",
        ),
    ] = None
    law: Annotated[
        str | None,
        Option(
            PartName(choices.laws),
            "the law of the noise: geometric (pure ε, the default) or gaussian (ρ; better where a person's trips are kept apart)",
        ),
    ] = None
    unit: Annotated[
        str | UnitSection, Option(Either((Text(choices=("trip",)), Fields(UnitSection))), "what is protected")
    ] = "trip"
    budget: Annotated[
        str | Mapping[str, Fraction] | None,
        Option(
            Either((PartName(choices.budgets), Named(Exact()))),
            "how ε is shared among the features: by name (see `cbdp parts budgets`), or feature → share",
        ),
    ] = None
    target: Annotated[
        Mapping[str, Fraction] | None,
        Option(
            Named(Exact()), "feature → how much its error matters: ε is shared for that, from public facts"
        ),
    ] = None
    public: Annotated[
        str | Mapping[str, Any] | None,
        Option(
            Either(
                (
                    Text('a file, or a table like { total = 37714, zone = "zones.csv" }'),
                    Named(Either((Whole(0), Text("a file")))),
                ),
            ),
            "counts that are public already: feature → count or file, or one CSV or Parquet file by a feature's attributes with a column count",
        ),
    ] = None
    ledger: Annotated[str, Option(Text(), "the file that keeps account of what this data set has spent")] = (
        "ledger.sqlite"
    )
    currency: Annotated[
        str | None,
        Option(
            Text(choices=("epsilon", "rho")),
            "what the ledger counts: ε, or ρ (then ε is charged as ε²/2); fixed when it is created; by default what the law costs",
        ),
    ] = None
    cap: Annotated[
        Fraction | Mapping[str, Fraction] | None,
        Option(
            Either((Exact(), Named(Exact(), keys=CAPS))),
            "the most the data set may ever spend, or a table: total, and for one person per_day, per_7_days, per_30_days, "
            "per_year; fixed when the ledger is created; by default epsilon",
        ),
    ] = None
    cap_delta: Annotated[
        Fraction | None,
        Option(
            Exact(probability, "a number of at least 0 and below 1"),
            "the most δ it may ever spend; by default delta",
        ),
    ] = None
