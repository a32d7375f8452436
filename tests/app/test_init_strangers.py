"""Three kinds of files as strangers bring them, made of real trips: what `cbdp init` writes reads nearly every row, unedited."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from cbdp import config
from cbdp.app import init
from cbdp.app.inspecting import reading_of
from cbdp.counting.reading import look

DATA = Path(os.environ.get("CBDP_DATA", Path(__file__).parents[3] / "shared" / "data"))
BIKE = DATA / "bayarea_bike_2014"
WEEK = f"FROM '{BIKE}/trips.parquet' WHERE start_time >= '2014-09-01' AND start_time < '2014-09-08'"
OPAL = DATA / "opal_tap_2016"
KINDS = {
    "trips": f'SELECT bike_id AS bike, start_time AS "when", origin AS from_station, destination AS to_station {WEEK}',
    "counts": f'SELECT CAST(start_time AS DATE) AS date, hour(start_time) AS hour, origin AS "from", destination AS "to", '
    f"count(*) AS journeys {WEEK} GROUP BY ALL",
    "taps": f"SELECT bike_id AS card, start_time AS tap_time, origin AS station, 'on' AS tap {WEEK} "
    f"UNION ALL SELECT bike_id, end_time, destination, 'off' {WEEK}",
}


@pytest.mark.skipif(not BIKE.is_dir(), reason=f"no bike-share data at {BIKE}: set CBDP_DATA to its folder")
@pytest.mark.parametrize("kind", KINDS)
def test_a_strangers_file_is_read_as_it_was_begun(kind: str, tmp_path: Path) -> None:
    """All trips count, and of the taps those that have a partner within six hours."""
    file = tmp_path / f"{kind}.csv"
    duckdb.sql(KINDS[kind]).write_csv(str(file))
    path = init.write(tmp_path / "cbdp.toml", file, BIKE / "stations.csv")
    assert not any(line.startswith("you have to edit") for line in init.summary_lines(path))
    found = look(reading_of(config.read(path)))
    ((trips,),) = duckdb.sql(f"SELECT count(*) {WEEK}").fetchall()
    assert 0.98 * trips <= found.trips <= trips
    assert kind == "taps" or found.trips == trips


@pytest.mark.skipif(not OPAL.is_dir(), reason=f"no tap-on data at {OPAL}: set CBDP_DATA to its folder")
def test_zones_that_are_made_spread_the_riders_of_a_region(tmp_path: Path) -> None:
    """By stops alone, which are public: no zone has half of the taps, where compact zones leave nearly all in one."""
    file = OPAL / "time-loc_train_tapon_20160725-31.csv.gz"
    path = init.write(tmp_path / "cbdp.toml", file, OPAL / "train_station_coords.csv")
    text = path.read_text("utf-8")
    most = {}
    for way in ("balanced", "clusters"):
        path.write_text(text.replace("balanced = 8", f"{way} = 8"), "utf-8")
        reading = reading_of(config.read(path))
        assert reading.stops is not None
        taps = Counter[str]()
        for stop, many in look(reading).by["location"]:
            taps[str(reading.stops.attribute()[stop])] += many
        most[way] = max(taps.values()) / taps.total()
    assert most["balanced"] < 0.5 < 0.9 < most["clusters"]
