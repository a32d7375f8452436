"""Every mistake in a configuration or its public files is one line with its place; nothing is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from small_city import CONFIG, state_of

from cbdp import config
from cbdp.app import plan as planning
from cbdp.errors import CbdpError

MODES = "modes = { distance_km = [2, 4] }"


# What is wrong: replacements, the line, what is said
WRONG = [
    ([('"trips.parquet"', '"none.parquet"')], 4, "there is no file"),
    ([('"trips.parquet"', '"broken.parquet"')], 4, "cannot be read as Parquet"),
    ([('"trips.parquet"', '"stops.txt"')], 4, "there is no file"),
    ([('"trips.parquet"', '["trips.parquet", "other.parquet"]')], 4, "column 'from_stop' holds int64 values"),
    ([('"trips.parquet"', '["trips.parquet", "duckdb://x::t"]')], 4, "lists a URL together with others"),
    ([('"stops.csv"', '"none.csv"')], 6, "there is no file"),
    ([('"stops.csv"', '"twice.csv"')], 6, "the stop 'S0' is listed twice"),
    ([('stops = "stops.csv"', 'stops = "stops.csv"\nstop_columns = { id = "key" }')], 6, "has no column 'key'"),
    ([('stops = "stops.csv"\n', "")], 11, "universe.zones needs stops"),
    ([('"from_stop"', '"form_stop"')], 7, "the trips have no column 'form_stop': there are from_stop"),
    ([('"from_stop"', '"?"')], 7, "the column of 'origin' is still '?': write the name of the column"),
    ([('"left_at"', '"?"')], 7, "the column of 'time' is still '?'"),
    ([('"to_stop"', '"from_stop"')], 7, "origin and destination are the same column"),
    ([("columns = { origin", "columns = { orign")], 7, "names 'orign', which is not a dimension: did you mean 'origin'?"),
    ([('"from_stop"', '"left_at"')], 7, "column 'left_at' holds timestamp[us] values, the dimension text"),
    ([("expected_trips = 60000", 'timezone = "Mars/Base"')], 8, "unknown time zone 'Mars/Base'"),
    ([("expected_trips = 60000", 'time_format = "%Q"')], 8, "the time format '%Q' cannot be read"),
    ([('every = "1h"', 'every = "45min"')], 11, "'45min' does not divide the time"),
    ([('start = "06:00"', 'start = "11:00"')], 11, "not after their start '11:00'"),
    ([('end = "10:00"', 'end = "24:30"')], 11, "'24:30' is not a time of day"),
    ([('zones = { column = "zone" }', 'zones = { column = "district" }')], 6, "has no column 'district'"),
    ([('zones = { column = "zone" }', 'zones = { polygons = "none.geojson" }')], 12, "there is no file"),
    ([('zones = { column = "zone" }', "zones = { clusters = 99 }")], 12, "cannot make 99 zones of stops at 6 places"),
    ([(MODES, "modes = { distance_km = [4, 2] }")], 13, "give distances above 0 in rising order"),
    ([(MODES, 'modes = { table = "none.csv" }')], 13, "there is no file"),
    ([(MODES, 'modes = { table = "pairs.csv" }')], 13, "row 3 of 'pairs.csv' has the unknown destination 'S9'"),
    ([(MODES, 'modes = { table = "pairs.csv", of = ["origin.zon", "destination"] }')], 13, "did you mean 'origin.zone'?"),
    ([(MODES, 'modes = { table = "zones.csv", of = ["origin.zone", "destination.zone"] }')], 13,
     "row 2 of 'zones.csv' has the unknown zone 'nort': did you mean 'north'?"),
    ([(MODES, 'modes = { table = "few.csv" }')], 13, "no value for 'S0', 'S0'"),
    ([(MODES, 'dimensions = { time = ["a"] }')], 13, "there is already a dimension 'time'"),
    ([(MODES, 'dimensions = { card = { file = "stops.csv", column = "x" } }')], 13, "has no column 'x'"),
    ([(MODES, 'dimensions = { card = { file = "stops.csv", column = "id" } }')], 13, "the trips hold numbers"),
    ([(MODES, 'dimensions = { card = ["a", "a"] }')], 13, "lists the value 'a' twice"),
    ([(MODES, 'days = ["weekday", "sunnday"]')], 13, "'sunnday' is not a type of day: did you mean 'sunday'?"),
    ([(MODES, 'days = { first = "2026-03-09", last = "2026-03-02" }')], 13, "before their start"),
    ([('time = { start = "06:00", end = "10:00", every = "1h" }\n', "")], 7, "which is not a dimension: state universe.time"),
    ([('time = { start = "06:00", end = "10:00", every = "1h" }\n', ""), (', time = "left_at"', "")], 1,
     "'odmts' needs the dimension 'time'"),
    ([("[privacy]", '[[feature]]\nname = "x"\nby = ["origin.zone",\n "tme"]\n[privacy]')], 18,
     "the feature 'x' groups by 'tme', which is not an attribute: did you mean 'time'?"),
    ([("[privacy]", '[[feature]]\nname = "zone"\nby = ["time"]\n[privacy]')], 16, "there is already a feature 'zone'"),
    ([("[privacy]", '[[feature]]\nname = "a/b"\nby = ["time"]\n[privacy]')], 15, "cannot be named 'a/b'"),
    ([("[privacy]", '[[feature]]\nname = "total"\nby = ["time"]\n[privacy]')], 16, "there is already a feature 'total'"),
    ([("cap = 2.0", 'unit = { person = "carrd", max_trips = 2 }')], 18, "no column 'carrd'"),
    ([("epsilon = 1.0", "rho = 0.5")], 16, "law 'geometric' spends pure ε, and no ρ: leave rho out, or write law"),
    ([("cap = 2.0", 'law = "gaussian"')], 18, "law 'gaussian' is paid for in ρ: give rho, or epsilon and delta"),
    ([("cap = 2.0", 'law = "gausian"')], 18, "did you mean 'gaussian'?"),
    ([("cap = 2.0", 'law = "gaussian"\ndelta = 0.5'), ('"constraint-based"', '"threshold-laplace"')], 18,
     "threshold-laplace draws geometric noise and spends ε: leave law out"),
    ([("cap = 2.0", 'law = "geometric"'), ('"constraint-based"', '"laplace"\nlaw = "rounded"')], 18,
     "law is 'geometric' here and 'rounded' in [mechanism]: leave one of them out"),
    ([("cap = 2.0", "delta = 0.001")], 18, "spends pure ε, and no δ: leave delta out"),
    ([("cap = 2.0", "budget = { total = 0.5, tiem = 0.5 }")], 18, "names 'tiem', which is not a feature: did you mean 'time'?"),
    ([("cap = 2.0", "budget = { total = 0.5, time = 0.5 }")], 18, "no budget for"),
    ([("cap = 2.0", "budget = { total = 1, time = 1, zone = 1, mode = 1, singleton = 1 }")], 18, "add up to 5, more than"),
    ([("cap = 2.0", "cap = 0.5")], 16, "a charge of 1 does not fit: 0.5 of the cap 0.5 is left for data set 'city'. Release less, by a smaller epsilon; or raise cap"),
    ([("cap = 2.0", "cap_delta = 0.5")], 15, "without a cap"),
    ([('"ledger.sqlite"', '"no/ledger.sqlite"')], 17, "there is no folder"),
    ([('"ledger.sqlite"', '"stops.csv"')], 17, "stops.csv"),
    ([('"constraint-based"', '"laplace"\nweights = "size"')], 22, "laplace has no setting 'weights'"),
    ([('"constraint-based"', '"laplace"'), ("cap = 2.0", 'budget = "uniform"')], 18, "no budget to share"),
    ([('"constraint-based"', '"stability-histogram"')], 15, "pays with δ: give a delta above 0"),
    ([('"constraint-based"', '"constraint-based"\nsolver = "newtn"')], 22, "mechanism.solver is 'newtn': did you mean 'newton'?"),
    ([('"constraint-based"', '"constraint-based"\nmeasured = ["total"]')], 22, "'singleton' is not measured"),
    ([('"constraint-based"', '"constraint-based"\nmeasured = ["singleton",\n"zones"]')], 23, "did you mean 'zone'?"),
    ([('"constraint-based"', '"constraint-based"\nweights = { zon = 1 }')], 22, "names 'zon', which is not a feature"),
    ([('"constraint-based"', '"constraint-based"\nweights = "size"\nestimator = "posterior"')], 20,
     "weights 'size' with estimator 'posterior', which weighs by inverse variance: leave weights out"),
    ([('"constraint-based"', '"constraint-based"\nprior = "stops.csv"')], 22, "holds no weights"),
    ([('"constraint-based"', '"constraint-based"\npreset = "paper"\nprior = "even.csv"')], 20, "a prior with estimator 'projection'"),
    ([("cap = 2.0", 'budget = "optimal"')], 18, "budget 'optimal' without a target"),
    ([("cap = 2.0", 'budget = "tables"\ntarget = { zone = 1 }')], 19, "a target with budget 'tables'"),
    ([("cap = 2.0", "target = { zone = 1, mod = 2 }")], 18, "privacy.target names 'mod', which is not a feature: did you mean 'mode'?"),
    ([("cap = 2.0", "target = {}")], 18, "say how much features matter"),
    ([('"constraint-based"', '"hierarchical"'), ("cap = 2.0", "target = { zone = 1 }")], 18, "hierarchical cannot share ε for a target"),
    ([('"constraint-based"', '"stability-histogram"'), ("cap = 2.0", 'delta = "1e-400"')], 20, "too small to compute with"),
    ([('"constraint-based"', '"stability-histogram"\ntables = ["zone", "zone"]'), ("cap = 2.0", "delta = 1e-6")], 20,
     "feature 'zone' is listed twice"),
    ([(MODES, 'modes = { table = "empty.csv" }')], 13, "row 2 of 'empty.csv' has no mode"),
    ([("cap = 2.0", 'budget = "no.such:Thing"')], 18, "budget 'no.such:Thing' cannot be loaded"),
    ([("cap = 2.0", 'budget = "cbdp.errors:InputError"')], 18, "is not a budget"),
    ([('"constraint-based"', '"no.such:Thing"')], 21, "mechanism 'no.such:Thing' cannot be loaded"),
    ([('"constraint-based"', '"constraint-based"\nsolver = "no.such:Thing"')], 22, "solver 'no.such:Thing' cannot be loaded"),
    ([('"release"', '"release"\nexport = ["csv",\n"no.such:Thing"]')], 26, "format 'no.such:Thing' cannot be loaded"),
    ([('"release"', '"release"\nconfidence = 0.9999')], 25, "confidence is 0.9999: give at most 0.999"),
    ([('"release"', '"stops.csv"')], 24, "exists already"),
    ([('"release"', '"no/release"')], 24, "there is no folder"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "line", "said"), WRONG, ids=[w[2][:40] for w in WRONG])
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    city: Path, changes: list[tuple[str, str]], line: int, said: str
) -> None:
    """Each mistake is told with file and line, and no file, folder or ledger appears or changes."""
    (city / "broken.parquet").write_bytes(b"PAR1 this is not whole")
    parquet.write_table(
        pa.table({"from_stop": [1], "to_stop": ["S1"], "left_at": [None]}), city / "other.parquet"
    )
    (city / "twice.csv").write_text("id,lat,lon,zone\nS0,42,-83,a\nS0,42,-83,a\n")
    (city / "pairs.csv").write_text("origin,destination,mode\nS0,S1,bus\nS0,S9,bus\n")
    (city / "zones.csv").write_text("origin.zone,destination.zone,mode\nnort,south,bus\n")
    (city / "empty.csv").write_text("origin,destination,mode\nS0,S1,\n")
    (city / "even.csv").write_text("stop,weight\n" + "".join(f"S{n},1\n" for n in range(6)))
    (city / "few.csv").write_text("origin,destination,mode\nS0,S1,bus\n")
    text = CONFIG
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (city / "cbdp.toml").write_text(text)
    before = state_of(city)
    with pytest.raises(CbdpError) as caught:
        planning.plan(config.read(city / "cbdp.toml"))
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"{city / 'cbdp.toml'}:{line}: ")
    assert message.count(str(city / "cbdp.toml")) == 1
    assert "\n" not in message
    assert state_of(city) == before
