"""Fleet sizing F(D): the fewest shuttles of each zone with which riders wait no longer than a limit on average.

More shuttles can mean longer waits, since another shuttle changes every later choice. So a size that fails proves nothing
about smaller ones, and bisection alone is not enough. Our rule:

1. One zone by itself, with the riders who come from other zones released at given seconds: bisect between a size that fails
   and one that serves (no leg refused, mean wait at most the limit). Then try the next `window` smaller sizes, and go on from
   any that serves, until `window` sizes in a row fail. With `window=None` every smaller size is tried.
2. Size all zones like this, at first roughly and with expected releases. Run them together, take the releases of this run,
   and size again. If the sizes repeat, they are the answer: run together, all zones serve.
3. If the sizes do not repeat within a few rounds: run all zones together and give those that fail another shuttle until
   none fails. Then a zone may give up 1 to `window` shuttles if it serves by itself with the releases of the last run, and
   all zones still serve together.

So all zones serve when they run together, and no zone can do with 1 to `window` shuttles fewer, either by itself with the
releases of that run or together with the others. Nothing is random: the same trips give the same fleet.

A reference without shared rides stands at the end: the minimum fleet by a path cover (`path_cover`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cbdp.arrays import Ints
from cbdp.compiling import kernel
from cbdp.errors import InputError
from cbdp.transit.city import City
from cbdp.transit.modes import Legs, arrivals
from cbdp.transit.simulator import (
    Fleet,
    Operations,
    Service,
    legs_subset,
    simulate_within_budget,
    totals_by_zone,
)

MIN_LEGS_PER_PERIOD = 20  # legs: the mean wait of fewer, in one zone and period, says nothing
EXPECTED_FIRST_WAIT_SECONDS = 120  # of a first leg, before anything is simulated
ROUNDS_OF_SEARCH = 2  # of sizing all zones by themselves, before they are mended together
COARSE_STEP_DIVISOR = 25  # the first sizes, on expected releases, may be off by one part in this many


@dataclass(frozen=True, eq=False)
class Sizing:
    """A fleet that serves, with the run that proves it; or None, and the reason why none was found.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city, size_fleet
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> sizing = size_fleet(city, legs)
    >>> sizing.fleet.shuttles, sizing.reason
    ((2,), '')
    """

    fleet: Fleet | None
    service: Service | None = field(repr=False)
    reason: str = ""
    runs: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"no fleet found: {self.reason}" if self.fleet is None else f"{self.fleet.total} shuttles"


class _NoFleetError(Exception):
    """The search reached one of its limits."""


@dataclass(frozen=True)
class SearchSizer:
    """The built-in `FleetSizer`: by the rule of `cbdp.transit.fleet_sizing`. If the search reaches a limit of its own, it says so: "no fleet found".

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Operations, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> SearchSizer(limit=120).size(city, legs, Operations()).fleet.shuttles
    (2,)
    """

    name: ClassVar[str] = "search"
    about: ClassVar[str] = "the fewest shuttles that keep the mean wait below a limit, by simulation"

    limit: int = 180  # seconds of mean wait
    period: int | None = None  # seconds: the limit also holds in each such part of the hours
    window: int | None = 3
    most_legs: int = 100_000
    most_shuttles: int = 2_000  # of one zone
    time_limit: float = 600.0  # seconds of search, checked between runs
    threads: int = 2

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise InputError(f"invalid limit of the mean wait, {self.limit} s: give 0 or more")
        if self.period is not None and self.period < 1:
            raise InputError(f"invalid period of {self.period} s: give at least 1, or None")
        if self.window is not None and self.window < 1:
            raise InputError(
                f"invalid window {self.window}: give at least 1, or None to try every smaller size"
            )

    def size(self, city: City, legs: Legs, operations: Operations) -> Sizing:
        """The fewest shuttles, by the rule above."""
        search = _Search(self, city, legs, operations)
        begun = time.perf_counter()
        try:
            fleet = search.fleet()
            service = simulate_within_budget(city, fleet, legs, operations)
        except _NoFleetError as limit:
            return Sizing(None, None, str(limit), search.runs, time.perf_counter() - begun)
        return Sizing(fleet, service, "", search.runs, time.perf_counter() - begun)


def size_fleet(
    city: City, legs: Legs, operations: Operations | None = None, sizer: SearchSizer | None = None
) -> Sizing:
    """The smallest fleet that serves these legs, F(D), by the built-in search.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> size_fleet(city, legs).fleet.shuttles
    (2,)
    """
    return (sizer or SearchSizer()).size(city, legs, operations or Operations())


def zones_within_limit(service: Service, zones: int, limit: int, period: int | None = None) -> list[bool]:
    """Which zones refuse nobody and keep the limit, over all hours and in every period with enough legs."""
    wait, served, unserved = totals_by_zone(service, zones)
    fine = (unserved == 0) & (wait <= limit * served)
    if period is not None:
        group, groups = _periods(service, zones, period)
        done = service.served
        legs = np.bincount(group[done], minlength=groups)
        waits = np.bincount(group[done], weights=service.wait, minlength=groups)
        late = (legs >= MIN_LEGS_PER_PERIOD) & (waits > limit * legs)
        fine &= ~late.reshape(zones, -1).any(axis=1)
    return [bool(f) for f in fine]


def _periods(service: Service, zones: int, period: int) -> tuple[Ints, int]:
    """The zone and period of every leg's release, as one number; releases after the hours count in the last period."""
    begin, end = service.legs.hours
    count = max(1, -(-(end - begin) // period))
    number = np.clip((service.release - begin) // period, 0, count - 1)
    return service.legs.zone * count + number, zones * count


def smallest_feasible_size(
    feasible: Callable[[int], bool],
    start: int,
    most: int,
    window: int | None,
    *,
    step: int = 1,
    apart: int = 1,
) -> int | None:
    """The smallest feasible size by rule 1; None if none was found up to `most`.

    The search leaves `start` in steps that grow from `step`, and bisects until a feasible and an infeasible size are `apart`.

    >>> sizes = {5, 7, 8, 9, 10, 11, 12}  # 6 is not
    >>> smallest_feasible_size(lambda n: n in sizes or n > 12, start=20, most=100, window=3)
    5
    """
    answers: dict[int, bool] = {}

    def ask(n: int) -> bool:
        if n not in answers:
            answers[n] = feasible(n)
        return answers[n]

    low, high = 0, max(1, min(start, most))
    while not ask(high):
        if high >= most:
            return None
        low, high, step = high, min(most, high + step), step * 2
    while low == 0 and high > 1:  # go down in growing steps: sizes that are far too small take longest to try
        lower = max(1, high - step)
        if ask(lower):
            high, step = lower, step * 2
        else:
            low = lower
    while high - low > apart:
        middle = (low + high) // 2
        if ask(middle):
            high = middle
        else:
            low = middle
    return _search_below(ask, high, 1, window)


def _search_below(feasible: Callable[[int], bool], smallest: int, least: int, window: int | None) -> int:
    """From a feasible size, the smallest below which `window` sizes in a row fail."""
    below = smallest - 1
    while below >= max(least, smallest - (smallest if window is None else window)):
        if feasible(below):
            smallest = below
        below -= 1
    return smallest


class _Search:
    def __init__(self, sizer: SearchSizer, city: City, legs: Legs, operations: Operations) -> None:
        self.sizer, self.city, self.legs, self.operations = sizer, city, legs, operations
        self.zones = len(city.zones)
        self.budget = sizer.limit * np.bincount(legs.zone, minlength=self.zones).astype(np.int64)
        self.end = time.perf_counter() + sizer.time_limit
        self.runs = 0

    def fleet(self) -> Fleet:
        if len(self.legs) > self.sizer.most_legs:
            raise _NoFleetError(f"{len(self.legs):,} shuttle legs are more than {self.sizer.most_legs:,}")
        release = self.expected_release()
        fleet = self.size_zones(release, None)
        for _ in range(ROUNDS_OF_SEARCH):
            service = self.run(fleet)
            release = np.where(service.release >= 0, service.release, release)
            sized = self.size_zones(release, fleet)
            if sized == fleet:
                return fleet
            fleet = sized
        return self.shrink(self.grow(fleet))

    def expected_release(self) -> Ints:
        """When every leg would be released if riders waited for the expected time and were driven straight."""
        legs = self.legs
        release = legs.release.copy()
        later = np.flatnonzero(legs.follows >= 0)
        before = legs.follows[later]
        direct = self.operations.hop(self.city)[legs.origin[before], legs.destination[before]]
        release[later] = arrivals(
            legs.timetable, legs.path[later], release[before] + EXPECTED_FIRST_WAIT_SECONDS + direct
        )
        return release

    def size_zones(self, release: Ints, guess: Fleet | None) -> Fleet:
        with ThreadPoolExecutor(self.sizer.threads) as pool:
            tasks = [pool.submit(self.size_zone, z, release, guess) for z in range(self.zones)]
            return Fleet(tuple(t.result() for t in tasks))

    def size_zone(self, zone: int, release: Ints, guess: Fleet | None) -> int:
        if not self.budget[zone] and not (self.legs.zone == zone).any():
            return 0
        feasible = self.zone_feasible(zone, release)
        most = self.sizer.most_shuttles
        if guess is None:
            start = self.first_guess(zone)
            shuttles = smallest_feasible_size(
                feasible, start, most, 0, step=1 + start // 8, apart=1 + start // COARSE_STEP_DIVISOR
            )
        else:
            shuttles = smallest_feasible_size(feasible, guess.shuttles[zone], most, self.sizer.window)
        if shuttles is None:
            raise _NoFleetError(
                f"zone {self.city.zones[zone]!r} is not served by {self.sizer.most_shuttles:,} shuttles"
            )
        return shuttles

    def zone_feasible(self, zone: int, release: Ints) -> Callable[[int], bool]:
        """A test whether a zone serves by itself with a number of shuttles."""
        zone_legs = legs_subset(self.legs, self.legs.zone == zone, release)

        def feasible(n: int) -> bool:
            self.count_run()
            fleet = Fleet(tuple(n if z == zone else 0 for z in range(self.zones)))
            service = simulate_within_budget(
                self.city, fleet, zone_legs, self.operations, wait_budget=self.budget
            )
            return not service.stopped and self.zones_served(service)[zone]

        return feasible

    def first_guess(self, zone: int) -> int:
        """As many shuttles as would be busy all the time with three riders each: rather too many than too few."""
        in_zone, hours = self.legs.zone == zone, self.legs.hours
        direct = self.operations.hop(self.city)[self.legs.origin[in_zone], self.legs.destination[in_zone]]
        return 1 + int(direct.sum()) // (3 * max(1, hours[1] - hours[0]))

    def count_run(self) -> None:
        self.runs += 1
        if time.perf_counter() > self.end:
            raise _NoFleetError(f"the search did not end within {self.sizer.time_limit:g} s")

    def run(self, fleet: Fleet, *, strict: bool = False) -> Service:
        self.count_run()
        return simulate_within_budget(
            self.city, fleet, self.legs, self.operations, wait_budget=self.budget if strict else None
        )

    def zones_served(self, service: Service) -> list[bool]:
        return zones_within_limit(service, self.zones, self.sizer.limit, self.sizer.period)

    def all_feasible(self, fleet: Fleet) -> bool:
        service = self.run(fleet, strict=True)
        return not service.stopped and all(self.zones_served(service))

    def grow(self, fleet: Fleet) -> Fleet:
        """Add shuttles to zones that fail when all run together, until none fails."""
        while True:
            ok = self.zones_served(self.run(fleet))
            if all(ok):
                return fleet
            fleet = Fleet(tuple(n + (not fine) for n, fine in zip(fleet.shuttles, ok, strict=True)))
            if max(fleet.shuttles) > self.sizer.most_shuttles:
                raise _NoFleetError(f"a zone is not served by {self.sizer.most_shuttles:,} shuttles")

    def shrink(self, fleet: Fleet) -> Fleet:
        """Take shuttles away while all zones still serve, until no zone can give up any."""
        zone = untouched = 0
        release = self.run(fleet).release
        while untouched < self.zones:
            fewer = self.reduced(fleet, zone, release)
            if fewer == fleet:
                untouched += 1
            else:
                untouched, release = 0, self.run(fewer).release
            fleet, zone = fewer, (zone + 1) % self.zones
        return fleet

    def reduced(self, fleet: Fleet, zone: int, release: Ints) -> Fleet:
        feasible_alone, has = self.zone_feasible(zone, release), fleet.shuttles[zone]

        def with_size(n: int) -> Fleet:
            return Fleet(tuple(n if z == zone else m for z, m in enumerate(fleet.shuttles)))

        def feasible(n: int) -> bool:
            return feasible_alone(n) and self.all_feasible(with_size(n))

        return with_size(_search_below(feasible, has, min(1, has), self.sizer.window))


# The minimum fleet without shared rides, as a minimum path cover (Vazifeh et al., 2018)
#
# Leg j can follow leg i in one shuttle if the drive from i's destination reaches j's origin by j's departure plus the longest
# wait. These pairs form their vehicle-shareability network, which has no cycle since legs are in order of departure. It need not be
# transitive, so shuttles are paths of it and not chains of an order: the fewest point-disjoint paths that cover all legs are as many as the
# legs less the size of a maximum matching of legs with their followers (Boesch and Gimpel, 1977), which the algorithm of Hopcroft and Karp
# (1973) finds.


MAX_PAIRS = 200_000_000  # pairs of legs of one zone: 4 bytes each


@dataclass(frozen=True, eq=False)
class Cover:
    """The fewest shuttles of each zone, and the leg that follows each leg (−1: it is the shuttle's last).

    >>> Cover((2, 1), np.array([-1, 0, -1])).shuttles
    (2, 1)
    """

    shuttles: tuple[int, ...]
    follower: Ints = field(repr=False)

    @property
    def total(self) -> int:
        return sum(self.shuttles)


def path_cover(city: City, legs: Legs, release: Ints, operations: Operations, *, wait: int = 0) -> Cover:
    """The fewest shuttles that take every leg alone, at most `wait` seconds after its release.

    A shuttle may start anywhere. With a wait the answer is a lower bound, since a delayed leg is assumed to delay none of
    the following ones.

    >>> import numpy as np
    >>> from cbdp.transit import ModeRule, Operations, Trips, legs_of, make_city
    >>> city = make_city(["A", "B", "C"], [0, 2, 5], [0, 0, 0], ["town"] * 3, ["A"])
    >>> riders = Trips(np.array([0, 2]), np.array([1, 0]), np.array([60, 120]), (0, 3600))
    >>> legs = legs_of(riders, ModeRule().choose(city))
    >>> path_cover(city, legs, legs.release, Operations()).shuttles
    (2,)
    """
    if len(release) != len(legs) or (release < 0).any():
        raise InputError("not every leg has a second of release: take them from a simulation")
    if wait < 0:
        raise InputError(f"invalid wait of {wait} s: give 0 or more")
    hop = operations.hop(city)
    follower = np.full(len(legs), -1, dtype=np.int64)
    shuttles = []
    for zone in range(len(city.zones)):
        members = np.flatnonzero(legs.zone == zone)
        members = members[np.argsort(release[members], kind="stable")]
        pairs = hop, legs.origin[members], legs.destination[members], release[members], wait
        start, to = np.zeros(len(members) + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        _compatible_pairs(*pairs, start, to)
        if start[-1] > MAX_PAIRS:
            raise InputError(
                f"{int(start[-1]):,} pairs of legs can follow each other, and this reference handles at most {MAX_PAIRS:,}: "
                "take fewer hours"
            )
        if start[-1]:
            to = np.empty(int(start[-1]), dtype=np.int32)
            _compatible_pairs(*pairs, start, to)
        match = maximum_matching(start, to, len(members))
        follower[members] = np.where(match >= 0, members[match], -1) if len(members) else -1
        shuttles.append(int((match < 0).sum()))
    return Cover(tuple(shuttles), follower)


def maximum_matching(start: Ints, to: NDArray[np.int32], right: int) -> Ints:
    """A maximum matching of a bipartite graph in compressed rows: the right end of each left end, or −1.

    The algorithm of Hopcroft and Karp (1973), as many edges as `networkx.bipartite.hopcroft_karp_matching`, which needs objects for 10⁷ pairs.
    SciPy's `maximum_bipartite_matching` has the same algorithm without a greedy start: on the 4.6 million pairs of 4,000 legs it took 20 s, this one 0.3 s.
    """
    return _hopcroft_karp(np.asarray(start, dtype=np.int64), np.asarray(to, dtype=np.int32), right)


@kernel
def _compatible_pairs(hop: Ints, origin: Ints, destination: Ints, release: Ints, wait: int, start: Ints, to: NDArray[np.int32]) -> None:  # fmt: skip
    """Add to `start[i + 1]` the number of legs that can follow leg i; with room in `to`, write these from `start[i]` on.

    A leg may follow one that is released at the same second only if it comes later in the order: so there are no cycles.
    """
    for i in range(len(origin)):
        free = release[i] + hop[origin[i], destination[i]]
        k = start[i]
        for j in range(i + 1, len(origin)):
            if free + hop[destination[i], origin[j]] <= release[j] + wait:
                if len(to):
                    to[k] = j
                k += 1
        if not len(to):
            start[i + 1] = k


@kernel
def _hopcroft_karp(start: Ints, to: NDArray[np.int32], right: int) -> Ints:  # noqa: PLR0915 - two searches over the same arrays
    """O(E √V): layers by breadth-first search, then disjoint shortest augmenting paths by depth-first search."""
    left = len(start) - 1
    match, back = np.full(left, -1, np.int64), np.full(right, -1, np.int64)
    layer, queue, edge, stack = (
        np.zeros(left, np.int64),
        np.zeros(left, np.int64),
        np.zeros(left, np.int64),
        np.zeros(left, np.int64),
    )
    for i in range(left):  # a greedy matching leaves little to do
        for k in range(start[i], start[i + 1]):
            if back[to[k]] < 0:
                match[i], back[to[k]] = to[k], i
                break
    while True:
        head = tail = 0
        for i in range(left):
            layer[i] = -1
            if match[i] < 0:
                layer[i] = 0
                queue[tail] = i
                tail += 1
        reached = False
        while head < tail:
            i = queue[head]
            head += 1
            for k in range(start[i], start[i + 1]):
                j = back[to[k]]
                if j < 0:
                    reached = True
                elif layer[j] < 0:
                    layer[j] = layer[i] + 1
                    queue[tail] = j
                    tail += 1
        if not reached:
            return match
        for i in range(left):
            edge[i] = start[i]
        for root in range(left):
            if match[root] >= 0:
                continue
            depth, stack[0] = 0, root
            while depth >= 0:
                i = stack[depth]
                if edge[i] == start[i + 1]:
                    layer[i] = -1  # a dead end for this phase
                    depth -= 1
                    if depth >= 0:
                        edge[stack[depth]] += 1
                    continue
                j = back[to[edge[i]]]
                if j < 0:  # a free right end: augment along the path
                    while depth >= 0:
                        i = stack[depth]
                        end = to[edge[i]]
                        match[i], back[end] = end, i
                        depth -= 1
                    break
                if layer[j] == layer[i] + 1:
                    depth += 1
                    stack[depth] = j
                else:
                    edge[i] += 1
