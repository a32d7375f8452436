"""Hub-and-shuttle network design: which arcs between hubs get frequent buses (after Mahéo, Kilby and Van Hentenryck, 2019).

It is a hub arc location problem (Campbell, Ernst and Krishnamoorthy, 2005) whose hubs are fixed and whose spokes are shuttles.

An open arc costs its buses. A trip costs its seconds and its shuttle kilometres: by shuttle all the way, or by a shuttle to a
hub, buses along open arcs, and a shuttle from a hub. Every hub has as many open arcs in as out, so that buses can run:
what that paper calls weak connectivity is not the graph theorist's, but a circulation. As a program over paths, with x_tp the share of the trips t on path p:

    minimise Σ_a cost_a z_a + Σ_tp trips_t cost_tp x_tp,   Σ_p x_tp = 1,   Σ_{p of t with a} x_tp ≤ z_a,   Σ_in z = Σ_out z

with z binary. Given z, every trip takes its cheapest open path, so x need not be binary. Paths are pruned without loss: a
path that is no cheaper than the shuttle all the way is never taken, nor one whose arcs include those of a path that is
cheaper or costs the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cbdp.arrays import Floats, Ints
from cbdp.errors import InputError
from cbdp.transit.city import City, Line

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Arc = tuple[int, int]  # two hubs, as stops of the city
MAX_BUS_PATHS = 500_000  # between hubs: more take longer to list than any time limit


@dataclass(frozen=True)
class Costs:
    """The prices that a design weighs, all in one currency; a rider's second costs `value_of_time` (an hour: 9).

    >>> Costs(value_of_time=0.005) == Costs(), Costs().headway
    (False, 600)
    """

    value_of_time: float = 9 / 3600
    shuttle_km: float = 1.0
    bus_km: float = 4.0
    headway: int = 600
    bus_speed: float = 30.0
    hours: float = 2.0
    most_rides: int = 3  # buses of one trip

    def __post_init__(self) -> None:
        if self.headway < 1 or self.bus_speed <= 0 or self.hours <= 0:
            raise InputError(
                f"headway {self.headway} s, bus speed {self.bus_speed} km/h, {self.hours} hours: all must be positive"
            )
        if min(self.value_of_time, self.shuttle_km, self.bus_km) < 0:
            raise InputError(
                f"costs cannot be negative: value_of_time is {self.value_of_time}, shuttle_km {self.shuttle_km}, "
                f"bus_km {self.bus_km}"
            )
        if self.most_rides < 1:
            raise InputError(f"invalid most_rides {self.most_rides}: a trip by bus has at least 1 ride")


@dataclass(frozen=True, eq=False)
class Demand:
    """Trips by pair of stops.

    >>> Demand(np.array([0, 0]), np.array([1, 2]), np.array([30, 12])).trips.sum().item()
    42
    """

    origin: Ints
    destination: Ints
    trips: Ints

    @classmethod
    def of(cls, origin: Ints, destination: Ints, stops: int) -> Demand:
        """Add up riders with the same ends; those who stay where they are do not count."""
        moves = origin != destination
        pair, trips = np.unique(origin[moves] * stops + destination[moves], return_counts=True)
        return cls(pair // stops, pair % stops, trips.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Design:
    """Open arcs, the cost of these and of all trips, and a lower bound of what any network costs.

    >>> Design(((0, 2), (2, 0)), cost=812.0, bound=812.0, status="optimal").arcs
    ((0, 2), (2, 0))
    """

    arcs: tuple[Arc, ...]
    cost: float
    bound: float
    status: str
    seconds: float = field(default=0.0, compare=False)

    @property
    def gap(self) -> float:
        """How far the cost may be above the optimum, relative to the cost."""
        return 0.0 if self.cost == 0 else max(0.0, (self.cost - self.bound) / abs(self.cost))

    def lines(self, city: City, costs: Costs | None = None) -> tuple[Line, ...]:
        """A one-way line for each open arc."""
        chosen = costs or Costs()
        return tuple(
            Line(
                f"{city.names[a]}→{city.names[b]}",
                (a, b),
                chosen.headway,
                (bus_seconds(city, chosen, a, b),),
                both_ways=False,
            )
            for a, b in self.arcs
        )


@dataclass(frozen=True)
class PathDesigner:
    """The built-in `NetworkDesigner`: the program over paths, solved by HiGHS.

    >>> PathDesigner(time_limit=10.0).time_limit
    10.0
    """

    name: ClassVar[str] = "path"
    about: ClassVar[str] = "the cheapest network, by a mixed-integer program over paths (HiGHS)"

    costs: Costs = Costs()
    time_limit: float = 100.0
    gap: float = 1e-6

    def design(self, city: City, demand: Demand) -> Design:
        return design_network(city, demand, self.costs, time_limit=self.time_limit, gap=self.gap)


def bus_seconds(city: City, costs: Costs, a: int, b: int) -> int:
    return max(1, int(np.ceil(round(city.metres[a, b] * 3.6 / costs.bus_speed, 6))))


def arc_cost(city: City, costs: Costs, a: int, b: int) -> float:
    """The cost of the buses along an arc during the hours of service."""
    return float(costs.bus_km * city.metres[a, b] / 1000 * costs.hours * 3600 / costs.headway)


def shuttle_cost(city: City, costs: Costs) -> Floats:
    cost: Floats = city.seconds * costs.value_of_time + city.metres / 1000 * costs.shuttle_km
    return cost


def ride_cost(city: City, costs: Costs, a: int, b: int) -> float:
    """The cost of a rider's wait, half a headway, and ride."""
    return (costs.headway / 2 + bus_seconds(city, costs, a, b)) * costs.value_of_time


def design_network(
    city: City, demand: Demand, costs: Costs | None = None, *, time_limit: float = 100.0, gap: float = 1e-6
) -> Design:
    """The cheapest network, or the best one found within the time limit with the gap that remains.

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C", "D"], [0, 1, 8, 9], [0, 0, 0, 0], ["west", "west", "east", "east"], ["A", "C"])
    >>> demand = Demand(np.array([1, 3]), np.array([3, 1]), np.array([400, 400]))
    >>> network = design_network(city, demand)
    >>> network.status, network.arcs
    ('optimal', ((0, 2), (2, 0)))
    """
    import time

    begun = time.perf_counter()
    chosen = costs or Costs()
    hubs = [int(h) for h in city.hubs]
    if len(hubs) < 2:
        raise InputError(f"the city has {len(hubs)} hubs: a network needs at least 2")
    rides = range(1, min(chosen.most_rides, len(hubs) - 1) + 1)
    paths = sum(math.perm(len(hubs), r + 1) for r in rides)
    if paths > MAX_BUS_PATHS:
        raise InputError(
            f"{len(hubs)} hubs have {paths:,} paths of at most {chosen.most_rides} rides between them, more than {MAX_BUS_PATHS:,}: "
            "make fewer stops hubs, or lower most_rides"
        )
    program = _Program(city, demand, chosen, hubs)
    x, bound, status = program.solve(time_limit, gap)
    arcs = tuple((hubs[a], hubs[b]) for k, (a, b) in enumerate(program.arcs) if x[k] > 0.5)
    cost = network_cost(city, demand, arcs, chosen)
    return Design(arcs, cost, min(bound, cost), status, time.perf_counter() - begun)


def network_cost(city: City, demand: Demand, arcs: Sequence[Arc], costs: Costs | None = None) -> float:
    """What a network costs when every trip takes its cheapest way; arcs join hubs, as `Design.arcs` do.

    Independent of the program: the cheapest ways are found by Bellman's recursion (1958) over rides, not among listed paths.

    >>> from cbdp.transit import make_city
    >>> city = make_city(["A", "B", "C", "D"], [0, 1, 8, 9], [0, 0, 0, 0], ["west", "west", "east", "east"], ["A", "C"])
    >>> demand = Demand(np.array([1, 3]), np.array([3, 1]), np.array([400, 400]))
    >>> network_cost(city, demand, [(0, 2), (2, 0)]) < network_cost(city, demand, [])
    True
    """
    chosen, hubs = costs or Costs(), city.hubs
    n = len(hubs)
    ride = np.full((n, n), np.inf)
    position = {int(h): k for k, h in enumerate(hubs)}
    arcs = list(dict.fromkeys(arcs))  # an arc is opened once
    for a, b in arcs:
        if a not in position or b not in position:
            raise InputError(
                f"the arc {a}–{b} does not join two hubs: the hubs are the stops {hubs.tolist()}"
            )
        ride[position[a], position[b]] = ride_cost(city, chosen, a, b)
    best, step = np.full((n, n), np.inf), np.where(np.eye(n, dtype=bool), 0.0, np.inf)
    for _ in range(chosen.most_rides):
        step = (step[:, :, None] + ride[None]).min(axis=1)
        best = np.minimum(best, step)
    shuttle = shuttle_cost(city, chosen)
    to, of = shuttle[demand.origin][:, hubs], shuttle[hubs][:, demand.destination].T
    by_bus = (to[:, :, None] + best[None] + of[:, None, :]).min(axis=(1, 2)) if arcs else np.inf
    each = np.minimum(shuttle[demand.origin, demand.destination], by_bus)
    opened = sum(arc_cost(city, chosen, a, b) for a, b in arcs)
    return float(demand.trips @ each + opened)


def is_balanced(arcs: Sequence[Arc]) -> bool:
    """Whether every hub has as many arcs in as out: what Mahéo, Kilby and Van Hentenryck (2019) call weak connectivity."""
    return Counter(a for a, _ in arcs) == Counter(b for _, b in arcs)


class _Program:
    """The mixed-integer program. Trips without a useful path by bus are left out: they go by shuttle."""

    def __init__(self, city: City, demand: Demand, costs: Costs, hubs: list[int]) -> None:
        self.city, self.costs, self.hubs = city, costs, hubs
        self.arcs: list[Arc] = [(a, b) for a in range(len(hubs)) for b in range(len(hubs)) if a != b]
        self.number = {arc: k for k, arc in enumerate(self.arcs)}
        self.routes = self._routes()
        self.direct, self.savings = self._paths(demand)
        self.weights = demand.trips

    def _routes(self) -> list[tuple[int, int, frozenset[int], float]]:
        """Ways by bus: first and last hub, arcs, and the cost of the rides to a rider."""
        routes = []
        price = {(a, b): ride_cost(self.city, self.costs, self.hubs[a], self.hubs[b]) for a, b in self.arcs}
        for rides in range(1, min(self.costs.most_rides, len(self.hubs) - 1) + 1):
            for way in permutations(range(len(self.hubs)), rides + 1):
                arcs = list(pairwise(way))
                routes.append(
                    (way[0], way[-1], frozenset(self.number[a] for a in arcs), sum(price[a] for a in arcs))
                )
        return routes

    def _paths(self, demand: Demand) -> tuple[Floats, list[list[tuple[float, frozenset[int]]]]]:
        """The cost of each trip by shuttle alone, and its paths that may be taken: saving and arcs of each."""
        shuttle, hubs = shuttle_cost(self.city, self.costs), np.array(self.hubs)
        direct = shuttle[demand.origin, demand.destination]
        first = np.array([r[0] for r in self.routes])
        last = np.array([r[1] for r in self.routes])
        rides = np.array([r[3] for r in self.routes])
        by_trip = []
        for t in range(len(demand.trips)):
            ends = shuttle[demand.origin[t], hubs][first] + shuttle[hubs, demand.destination[t]][last]
            saving = direct[t] - ends - rides
            order = np.argsort(-saving, kind="stable")
            kept: list[tuple[float, frozenset[int]]] = []
            for p in order[: int((saving > 1e-12).sum())]:
                arcs = self.routes[int(p)][2]
                if not any(other <= arcs for _, other in kept):
                    kept.append((float(saving[p]), arcs))
            by_trip.append(kept)
        return direct, by_trip

    def solve(self, time_limit: float, gap: float) -> tuple[Floats, float, str]:
        """Which arcs are open (above ½), a proven lower bound of the cost, and how the search ended."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        arcs = len(self.arcs)
        cost, table, lower, upper = self._program()
        solution = milp(
            cost,
            constraints=LinearConstraint(table, lower, upper),
            bounds=Bounds(0, 1),
            integrality=np.arange(len(cost)) < arcs,
            options={"time_limit": time_limit, "mip_rel_gap": gap},
        )
        constant = float(self.weights @ self.direct)
        bound = constant + (
            float(solution.mip_dual_bound) if solution.mip_dual_bound is not None else -np.inf
        )
        if solution.x is None:  # opening nothing is always possible
            return np.zeros(arcs), bound, f"no network found: {solution.message}"
        return solution.x[:arcs], bound, "optimal" if solution.status == 0 else f"stopped: {solution.message}"

    def _program(self) -> tuple[Floats, csr_array, Floats, Floats]:
        """Cost of every variable (arcs, then paths), the constraints as a sparse table, and their limits."""
        import scipy.sparse as sp

        cost = [arc_cost(self.city, self.costs, self.hubs[a], self.hubs[b]) for a, b in self.arcs]
        data, upper = self._path_rows(cost)
        paths = len(upper)
        for hub in range(len(self.hubs)):  # as many arcs in as out
            for k, (a, b) in enumerate(self.arcs):
                if hub in (a, b):
                    data.append((paths + hub, k, 1.0 if a == hub else -1.0))
        upper += [0.0] * len(self.hubs)
        lower = [-np.inf] * paths + [0.0] * len(self.hubs)
        r, c, v = (np.array(column) for column in zip(*data, strict=True))
        shape = (len(upper), len(cost))
        table = sp.csr_array((v, (r.astype(np.int64), c.astype(np.int64))), shape=shape)
        return np.array(cost), table, np.array(lower), np.array(upper)

    def _path_rows(self, cost: list[float]) -> tuple[list[tuple[int, int, float]], list[float]]:
        """One path for each trip, on open arcs only: entries and upper limits. The paths' savings are added to `cost`."""
        data: list[tuple[int, int, float]] = []
        upper: list[float] = []
        for trips, paths in zip(self.weights.tolist(), self.savings, strict=True):
            if not paths:
                continue
            columns = range(len(cost), len(cost) + len(paths))
            cost += [-trips * saving for saving, _ in paths]
            data += [(len(upper), c, 1.0) for c in columns]
            upper.append(1.0)
            for arc in sorted(frozenset().union(*(a for _, a in paths))):
                data += [(len(upper), c, 1.0) for c, (_, a) in zip(columns, paths, strict=True) if arc in a]
                data.append((len(upper), arc, -1.0))
                upper.append(0.0)
        return data, upper
