"""An exported matrix is assigned by AequilibraE: the step after Open Matrix in a planner's day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import STOPS, city_release

from cbdp.release.export import export

CENTRE, EMPTY = 5000, 99


def star(ids: list[int]) -> Any:
    """A network of one street, both ways, from every zone to a crossing in the middle."""
    pandas = pytest.importorskip("pandas")
    from aequilibrae.paths import Graph

    links = [(n + 1, zone, CENTRE, 0, 1.0, 1000.0) for n, zone in enumerate(ids)]
    graph = Graph()
    graph.network = pandas.DataFrame(
        links, columns=["link_id", "a_node", "b_node", "direction", "free_flow_time", "capacity"]
    )
    graph.mode = "c"
    graph.prepare_graph(np.array(ids))
    graph.set_graph("free_flow_time")
    graph.set_blocked_centroid_flows(False)
    return graph


@pytest.mark.filterwarnings("ignore")  # whatever AequilibraE's own dependencies warn of
def test_aequilibrae_assigns_an_exported_matrix(tmp_path: Path) -> None:
    """On a star, the street of a zone carries the zone's departures one way and its arrivals the other: no trip is lost or turned round."""
    pytest.importorskip("aequilibrae", reason="no AequilibraE: pip install aequilibrae")
    from aequilibrae.matrix import AequilibraeMatrix
    from aequilibrae.paths import TrafficAssignment, TrafficClass

    release, trips = city_release()
    ids = [EMPTY, *sorted(STOPS)]
    (tmp_path / "zones.txt").write_text("".join(f"{zone}\n" for zone in ids))
    export(release, tmp_path / "od.omx", "omx", zones=tmp_path / "zones.txt")
    matrix = AequilibraeMatrix()
    matrix.load(tmp_path / "od.omx")
    assert matrix.index.tolist() == ids
    matrix.computational_view(["07:00"])
    assignment = TrafficAssignment()
    assignment.add_class(TrafficClass("car", star(ids), matrix))
    assignment.set_vdf("BPR")
    assignment.set_vdf_parameters({"alpha": 0.15, "beta": 4.0})
    assignment.set_capacity_field("capacity")
    assignment.set_time_field("free_flow_time")
    assignment.set_algorithm("all-or-nothing")
    assignment.set_cores(1)
    assignment.execute()
    flows = assignment.results()
    for n, zone in enumerate(ids):
        leave = sum(count for (o, _, t), count in trips.items() if (o, t) == (zone, "07:00"))
        come = sum(count for (_, d, t), count in trips.items() if (d, t) == (zone, "07:00"))
        assert (flows["PCE_AB"][n + 1], flows["PCE_BA"][n + 1]) == (leave, come)
