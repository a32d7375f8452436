"""External programs as plug-ins."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cbdp.transit import plugins
from cbdp.transit.design import Costs, Demand
from cbdp.transit.interfaces import Command, PluginError
from cbdp.transit.plugins import example_city, example_legs
from cbdp.transit.simulator import Fleet

SIZER = """
import json, pathlib, sys
import pyarrow.parquet as pq
folder = pathlib.Path(sys.argv[-1])
problem = json.loads((folder / "problem.json").read_text())
legs = pq.read_table(folder / "legs.parquet").to_pydict()
fleet = {z: min(20, legs["zone"].count(z)) for z in problem["zones"]}
(folder / "plan.json").write_text(json.dumps({"fleet": fleet}))
"""

DESIGNER = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[-1])
a, b = json.loads((folder / "problem.json").read_text())["hubs"]
(folder / "plan.json").write_text(json.dumps({"arcs": [[a, b], [b, a]]}))
"""

# serves first legs one by one with the first shuttle of their zone; reads times and rules from the folder
DISPATCHER = """
import json, pathlib, sys
import pyarrow.parquet as pq
folder = pathlib.Path(sys.argv[-1])
problem = json.loads((folder / "problem.json").read_text())
rules = problem["rules"]
times = pq.read_table(folder / "times.parquet").to_pylist()
hop = {(r["from"], r["to"]): r["seconds"] + (rules["stop_seconds"] if r["from"] != r["to"] else 0) for r in times}
first, at = {}, {}
for v, start in enumerate(rules["starts"]):
    zone = problem["zones"][next(z for z in range(len(rules["shuttles"])) if v < sum(rules["shuttles"][: z + 1]))]
    if zone not in first:
        first[zone], at[zone] = v, (problem["hours"][0], start)
visits = []
legs = [r for r in pq.read_table(folder / "legs.parquet").to_pylist() if r["release"] >= 0]
for leg in sorted(legs, key=lambda r: r["release"]):
    since, stop = at[leg["zone"]]
    picks = max(since + hop[stop, leg["origin"]], leg["release"])
    if picks - leg["release"] > rules["patience"]:
        continue
    drops = picks + hop[leg["origin"], leg["destination"]]
    v = first[leg["zone"]]
    visits.append({"shuttle": v, "second": picks, "stop": leg["origin"], "pick": [leg["leg"]]})
    visits.append({"shuttle": v, "second": drops, "stop": leg["destination"], "drop": [leg["leg"]]})
    at[leg["zone"]] = drops, leg["destination"]
(folder / "plan.json").write_text(json.dumps({"visits": visits}))
"""


def command(tmp_path: Path, text: str, seconds: float = 120.0) -> Command:
    script = tmp_path / "plugin.py"
    script.write_text(text)
    return Command((sys.executable, str(script)), seconds)


def test_external_commands(tmp_path: Path) -> None:
    """Programs that read Parquet and JSON and write plan.json are sizers, designers and dispatchers."""
    city = example_city()
    legs = example_legs(city, 0)
    sized = plugins.size(city, legs, command(tmp_path, SIZER))
    assert sized.fleet is not None
    assert sized.fleet.total <= 40
    demand = Demand.of(*np.random.default_rng(0).integers(0, 12, (2, 50)), 12)
    found = plugins.design(city, demand, command(tmp_path, DESIGNER), costs=Costs())
    assert set(found.arcs) == {(2, 6), (6, 2)}
    service = plugins.dispatch(city, Fleet((2, 1)), legs, command(tmp_path, DISPATCHER))
    first = legs.follows < 0
    assert service.served[first].any()
    assert not service.served[~first].any()
    assert (service.wait >= 0).all()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import time; time.sleep(600)", "hangs"),
        ("import sys; sys.exit('out of ideas')", "code 1: out of ideas"),
        ("pass", "no plan.json"),
        ("import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{')", "not valid JSON"),
        ("import sys; open(sys.argv[-1] + '/plan.json', 'w').write('[]')", "no 'fleet'"),
        (
            "import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{\"fleet\": {\"west\": 2}}')",
            "zone 'east'",
        ),
        (
            "import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{\"fleet\": {\"west\": 1.5, \"east\": 2}}')",
            "makes no sense",
        ),
        (
            "import sys; open(sys.argv[-1] + '/plan.json', 'w').write('{\"fleet\": {\"west\": 0, \"east\": 0}}')",
            "service",
        ),
    ],
)
def test_bad_commands_are_errors(tmp_path: Path, text: str, word: str) -> None:
    """A program that hangs, crashes, says nothing, nonsense or less than was asked is an error that says so."""
    city = example_city()
    with pytest.raises(PluginError, match=word):
        plugins.size(city, example_legs(city, 0), command(tmp_path, text, 1.5 if "sleep" in text else 60.0))
    with pytest.raises(PluginError, match="cannot be run"):
        plugins.size(city, example_legs(city, 0), Command(("/nowhere/at/all",)))
