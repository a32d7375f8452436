"""Taps: how many there are, what became of them, and words that do not say whether a tap is on or off. Private."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cbdp.app.inspecting.cause import Cause, counted, quoted, toml
from cbdp.app.inspecting.reading import TripReading, look, values_in
from cbdp.privacy.unit import RELEASE
from cbdp.trips import Inspection
from cbdp.trips.engines.base import MISSING, UNREAD
from cbdp.trips.inspect import REASONS, Dropped
from cbdp.trips.opening import rows_of
from cbdp.trips.preparing import Linked, Prepared

ROWS = "rows (a row is a trip, or a tap that is part of none)"  # once taps are linked
MOST = 200  # different words of a column that are looked at: where there are more, it is another column
SHOWN = 8
FEW = 5  # one in so many taps, or more, without its other end is a habit of riders and not an accident


@dataclass(frozen=True)
class TapWords:
    """What stands in the column of taps: words with their rows."""

    rows: int  # of the file
    on: tuple[tuple[str, int], ...]
    off: tuple[tuple[str, int], ...]
    others: tuple[tuple[str, int], ...]

    @property
    def ons(self) -> int:
        return sum(rows for _, rows in self.on)

    @property
    def offs(self) -> int:
        return sum(rows for _, rows in self.off)

    @property
    def complete(self) -> bool:
        """Whether every row of the file is known by its word, so that taps can be told."""
        return len(self.on) + len(self.off) + len(self.others) < MOST


def linked_taps(reading: TripReading) -> Linked | None:
    """How taps are linked, where rows are taps."""
    by = reading.trips.by if isinstance(reading.trips, Prepared) else None
    return by if isinstance(by, Linked) else None


def tap_words(reading: TripReading, linked: Linked) -> TapWords:
    """Read the column of taps."""
    assert isinstance(reading.trips, Prepared)
    rows, words = values_in(reading.trips.trips, linked.action, MOST)
    sides: dict[str, list[tuple[str, int]]] = {"on": [], "off": [], "others": []}
    for word, many in words:
        same = word.strip().lower().replace(" ", "_")
        sides["on" if same in linked.on else "off" if same in linked.off else "others"].append((word, many))
    return TapWords(rows, tuple(sides["on"]), tuple(sides["off"]), tuple(sides["others"]))


def read_lines(reading: TripReading, found: Inspection, linked: Linked) -> Iterator[str]:
    """Taps read, trips linked, taps left alone and why, trips that count."""
    words = tap_words(reading, linked)
    taps, rows = words.ons + words.offs, found.read
    if not words.complete:
        yield f"{counted(words.rows, 'row')} read; column {linked.action!r} holds {MOST} or more different words"
        return
    others = f" in {counted(words.rows, 'row')}" if words.rows != taps else ""
    yield f"{counted(taps, 'tap')} read{others}: {counted(words.ons, 'tap-on')} and {counted(words.offs, 'tap-off')}"
    trips = taps - rows
    yield f"{counted(trips, 'trip')} linked: a tap-on with the next tap-off of the same {linked.person!r}"
    over = taps - rows_of(reading.trips) - trips if reading.unit.per != RELEASE else 0
    if over > 0:
        per = reading.unit.per
        yield (
            f"{counted(over, 'pair')} of taps not linked, because {'it begins' if over == 1 else 'they begin'} in one {per} and {'ends' if over == 1 else 'end'} in "
            f'another: one {per} of a person is protected on its own (data.day_starts = "04:00" puts the night to the day before)'
        )
    alone = _alone(found)
    if untimed(found):
        alone = ["their times are not understood"]
    yield f"{counted(rows - trips, 'tap')} left alone{': ' + ', '.join(alone) if alone else ''}"
    if trips:
        yield f"{found.counted:,} of {counted(trips, 'trip')} counted ({100 * found.counted / trips:.1f} %)"


def _alone(found: Inspection) -> list[str]:
    missing = {d.column: d.rows for d in found.dropped if d.reason == REASONS[MISSING]}
    sides = {"destination": ("tap-on", "tap-off"), "origin": ("tap-off", "tap-on")}
    return [
        f"{counted(missing[end], this)} without a {other}"
        for end, (this, other) in sides.items()
        if end in missing
    ]


def untimed(found: Inspection) -> bool:
    """Whether most taps have no time that is understood: then nothing can be linked, for no other reason."""
    return any(d.reason == REASONS[UNREAD] and 2 * d.rows > found.read for d in found.dropped)


# Likely mistakes


def tap_causes(reading: TripReading, found: Inspection) -> Iterator[Cause]:
    """Words that are not known, and taps that have no other end."""
    linked = linked_taps(reading)
    if linked is None:
        return
    words = tap_words(reading, linked)
    if not words.on or not words.off:
        yield _one_sided(reading, linked, words)
        return
    if words.others and words.complete:
        rows = sum(many for _, many in words.others)
        what = f"{counted(rows, 'row')} are neither tap-on nor tap-off by what stands in column {linked.action!r}, and are left out"
        cure = 'if some of them are taps, list all words in [data]: taps = { on = ["…", "…"], off = "…" }'
        yield Cause(rows, what, cure, quoted(words.others, SHOWN))
    for dropped in found.dropped:
        yield from _untapped(reading, found, linked, dropped)


def _one_sided(reading: TripReading, linked: Linked, words: TapWords) -> Cause:
    """No word is known for a tap-on, or none for a tap-off."""
    missing = " and no ".join(
        name for name, known in (("tap-on", words.on), ("tap-off", words.off)) if not known
    )
    there = (*words.on, *words.off, *words.others)
    if not words.others:
        what = f"column {linked.action!r} has no {missing}, so no trip can be linked"
        return Cause(words.rows, what, _by_stop(reading), quoted(there, SHOWN))
    what = f"column {linked.action!r} has no {missing} that is known by its word, like on and off, in and out, entry and exit"
    cure = 'say in [data] which words of your file mean what: taps = { on = "…", off = "…" }'
    return Cause(words.rows, what, cure, quoted(there, SHOWN), _proposal(reading, linked, there))


def _by_stop(reading: TripReading) -> str:
    """The command that begins anew with counts by stop."""
    data = reading.config.data
    words = ["cbdp", "init", *data.trips, *(["--stops", data.stops] if data.stops else [])]
    return f"count taps by stop instead: {shlex.join([*words, '--count-taps', '--out', 'by-stop.toml'])}"


def _proposal(reading: TripReading, linked: Linked, words: tuple[tuple[str, int], ...]) -> str:
    """Of two words, the order that links more trips."""
    if len(words) != 2:
        return ""
    (a, _), (b, _) = words
    tried = []
    for on, off in ((a, b), (b, a)):
        same = [word.strip().lower().replace(" ", "_") for word in (on, off)]
        by = replace(linked, on=(same[0],), off=(same[1],))
        assert isinstance(reading.trips, Prepared)
        found = look(replace(reading, trips=replace(reading.trips, by=by)))
        tried.append((found.counted, f"taps = {{ on = {toml(on)}, off = {toml(off)} }}"))
    (most, line), (fewer, _) = sorted(tried, reverse=True)
    return (
        f"{line}: {counted(most, 'trip')} then count (the other way round {fewer:,})" if most > fewer else ""
    )


def _untapped(reading: TripReading, found: Inspection, linked: Linked, dropped: Dropped) -> Iterator[Cause]:
    """Taps that are not linked; where times cannot be read, that is the cause and this follows from it."""
    ends = {"destination": "tap-off", "origin": "tap-on"}
    if dropped.reason != REASONS[MISSING] or dropped.column not in ends:
        return
    if untimed(found):
        return
    other = ends[dropped.column]
    what = f"{counted(dropped.rows, 'tap')} {'has' if dropped.rows == 1 else 'have'} no {other} of the same {linked.person!r} within {linked.within // 3600} hours"
    if other == "tap-on":
        yield Cause(
            dropped.rows,
            what,
            "they are left out: the tap-on is missing or was before the file begins, or the card tapped off twice",
        )
        return
    cure = "they are left out: the tap-off is missing or was after the file ends, or the card tapped on twice"
    if dropped.rows * FEW > found.read:
        cure = f"they are left out. If riders need not tap off, work out the missing ends of their trips first, or {_by_stop(reading)}"
    yield Cause(dropped.rows, what, cure)
