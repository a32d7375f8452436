"""PRIVATE. From rows to counts: what is here sees trips, and nothing right of the wall may import it.

| modules | what they do |
|---|---|
| clock, columns | how values are read: public rules, the same for every engine |
| plan | what an engine is asked for, made of public things alone |
| files, csv_rows, linking, engines/ | where trips lie, how taps are linked, and how an engine counts them there |
| bounding | which trips of a person are kept |
| counts | trips to exact counts: what must be true of each, trip types in order |
| inspection, recount | what the curator sees; the second count of an audit |
| reading, diagnosis, plausibility | how a configuration reads trips, what may be wrong with that, and whether a release may go on |
"""

from cbdp.counting.clock import Clock
from cbdp.counting.columns import Schema
from cbdp.counting.counts import Counts, check_universe, count
from cbdp.counting.inspection import Inspection, inspect, loads_of, schema_of, second_count, trips_by_person

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
