"""What the table [series] may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from cbdp.app.config.kinds import Day, Either, Exact, Fields, Many, Named, Option, Text, Whole
from cbdp.privacy.running import STRATEGIES

STAGES = ("preliminary", "final")

NAME = Text(
    "a name of letters, digits, spaces, hyphens and underscores, at most 100",
    form=r"^[\w][\w .-]{0,99}(?![\s\S])",
)


@dataclass(frozen=True)
class DayRange:
    """Days from a first to a last."""

    first: Annotated[str, Option(Day(), "the first day")]
    last: Annotated[str, Option(Day(), "the last day")]


@dataclass(frozen=True)
class RunningSection:
    """Running totals of some tables, to which the published periods add up."""

    tables: Annotated[tuple[str, ...], Option(Many(Text()), "the features whose running totals are measured")]
    share: Annotated[
        Fraction,
        Option(
            Exact(),
            "what a whole span costs for one period of the unit, in units of what each release spends on the same table",
        ),
    ] = Fraction(1)
    periods: Annotated[
        int | None,
        Option(
            Whole(),
            "how many releases a span has; then a new one begins, and is charged. By default those of a year: 365 days, 52 weeks or 12 months",
        ),
    ] = None
    strategy: Annotated[
        str | None,
        Option(
            Text(choices=tuple(STRATEGIES)),
            "which sums of releases are measured; by default the square root with Gaussian noise, else the binary tree",
        ),
    ] = None


@dataclass(frozen=True)
class SeriesSection:
    """A release for every period of a calendar, from one universe and one set of features."""

    NEEDS: ClassVar[Mapping[str, str]] = {"shares": "final_after", "final_after": "shares"}

    calendar: Annotated[
        str, Option(Text(choices=("daily", "weekly", "monthly")), "how long the period of each release is")
    ]
    start: Annotated[str, Option(Day(), "the first service day of the first period")]
    end: Annotated[str | None, Option(Day(), "the last service day of the last period; by default none")] = (
        None
    )
    name: Annotated[
        str,
        Option(NAME, "what the ledger knows the series by: several series of one ledger have several names"),
    ] = "series"
    version: Annotated[
        int, Option(Whole(), "raise it by 1 when the universe or the features change, say by a new stop")
    ] = 1
    renamed: Annotated[
        Mapping[str, str] | None,
        Option(
            Named(Text("a file")),
            "version → CSV file with the columns old and new: stops that have another name from that version on",
        ),
    ] = None
    gaps: Annotated[
        tuple[str | DayRange, ...],
        Option(
            Many(Either((Day(), Fields(DayRange)))),
            "days without a release, each a day or { first, last }; of weekly and monthly releases whole periods",
        ),
    ] = ()
    revise: Annotated[
        str,
        Option(
            Text(choices=("never", "once")),
            '"never": rows that come after a release are in none; "once": a preliminary and a final release of every period',
        ),
    ] = "never"
    shares: Annotated[
        Mapping[str, Fraction] | None,
        Option(
            Named(Exact(), keys=STAGES),
            'with revise = "once": how epsilon is divided between the two; they add up to 1',
        ),
    ] = None
    final_after: Annotated[
        int | None,
        Option(
            Whole(), 'with revise = "once": how many days after the end of a period its final release is due'
        ),
    ] = None
    earlier: Annotated[
        int,
        Option(
            Whole(),
            "how many earlier releases of the series the next one learns from: free, for they are published; by default none",
        ),
    ] = 0
    running: Annotated[
        RunningSection | None,
        Option(
            Fields(RunningSection),
            "running totals of some tables: weeks, months and years that are far more precise than days added up",
        ),
    ] = None
