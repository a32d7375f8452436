"""PRIVATE. From rows to counts: what is here sees trips, and nothing right of the wall may import it.

| modules | what they do |
|---|---|
| clock, written, zones, kinds | how values are read: public rules, the same for every engine |
| ways, planning, plan | what an engine is asked for, made of public things alone |
| files, rows, spill, engines/ | where trips lie, and how an engine counts them there |
| tickets, invariants, ranking | which trips of a person are kept; what must be true of every count; trip types |
| recount, plain_values | the second count of an audit, without plan and engine |
| count, inspect, opening | what others call |
"""

from cbdp.trips.clock import Clock
from cbdp.trips.count import Counts, check_universe, count
from cbdp.trips.inspect import Inspection, inspect
from cbdp.trips.kinds import Schema
from cbdp.trips.opening import loads_of, schema_of, second_count, trips_by_person

__all__ = [
    "Clock",
    "Counts",
    "Inspection",
    "Schema",
    "check_universe",
    "count",
    "inspect",
    "loads_of",
    "schema_of",
    "second_count",
    "trips_by_person",
]
