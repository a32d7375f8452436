"""Small files made to the published field lists of TIDES, GTFS-ride, NYC TLC and GBFS: for the tests of data presets."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

STOPS = [f"S{n:02d}" for n in range(8)]
START = dt.datetime(2026, 3, 2)  # noqa: DTZ001

TIDES = [
    "transaction_id",
    "service_date",
    "event_timestamp",
    "amount",
    "currency_type",
    "fare_action",
    "trip_id_performed",
    "pattern_id",
    "stop_sequence",
    "vehicle_id",
    "device_id",
    "fare_id",
    "stop_id",
    "num_riders",
    "fare_media_id",
    "rider_category",
    "fare_product",
    "fare_period",
    "fare_capped",
    "token_id",
    "balance",
]
GTFS_RIDE = [
    "rider_id",
    "agency_id",
    "trip_id",
    "boarding_stop_id",
    "boarding_stop_sequence",
    "alighting_stop_id",
    "alighting_stop_sequence",
    "service_date",
    "boarding_time",
    "alighting_time",
    "rider_type",
    "rider_type_description",
    "fare_paid",
    "transaction_type",
    "fare_media",
    "accompanying_device",
    "transfer_status",
]
BIKES = [
    "ride_id",
    "rideable_type",
    "started_at",
    "ended_at",
    "start_station_name",
    "start_station_id",
    "end_station_name",
    "end_station_id",
    "start_lat",
    "start_lng",
    "end_lat",
    "end_lng",
    "member_casual",
]


def write_csv(path: Path, fields: list[str], rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, fields, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def gtfs(folder: Path) -> Path:
    """A feed with stops, a station that is no stop, and an agency in Los Angeles."""
    feed = folder / "gtfs"
    feed.mkdir()
    lines = [f"{s},Stop {s},{34 + n / 100},{-118 + n / 100},0" for n, s in enumerate(STOPS)]
    head = "stop_id,stop_name,stop_lat,stop_lon,location_type"
    (feed / "stops.txt").write_text("\n".join([head, *lines, "C,Central,34,-118,1"]) + "\n")
    (feed / "agency.txt").write_text(
        "agency_id,agency_name,agency_url,agency_timezone\nA,Metro,https://example.org,America/Los_Angeles\n"
    )
    return feed


def rides(number: int, seed: int = 1) -> list[tuple[str, str, dt.datetime, str]]:
    """Origin, destination, local time of departure, person."""
    rng = np.random.default_rng(seed)
    made = []
    for n in range(number):
        o, d = rng.choice(len(STOPS), 2, replace=False)
        at = START + dt.timedelta(days=int(rng.integers(0, 5)), minutes=int(rng.integers(6 * 60, 22 * 60)))
        made.append((STOPS[o], STOPS[d], at, f"token-{n % (number // 3)}"))
    return made


def tides(folder: Path, number: int = 600) -> int:
    """Taps of trips that do not overlap, with top-ups, lost tap-offs and taps without a token between them; how many trips are whole."""
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(2)
    whole, free = 0, dict.fromkeys({r[3] for r in rides(number)}, START)
    for o, d, at, token in sorted(rides(number), key=lambda r: r[2]):
        if at < free[token]:
            continue
        lost = rng.random() < 0.1
        whole += not lost
        free[token] = at + dt.timedelta(
            hours=7 if lost else 1
        )  # a tap-off much later would belong to nothing
        rows.append(_tap(token, o, at, "Enter"))
        if not lost:
            rows.append(_tap(token, d, at + dt.timedelta(minutes=25), "Exit"))
        if rng.random() < 0.1:
            rows.append(_tap(token, "", at + dt.timedelta(minutes=5), "Add"))
            rows.append(_tap("NA", o, at, "Enter"))
    order = rng.permutation(len(rows))
    shuffled = [{**rows[i], "transaction_id": f"x{n}"} for n, i in enumerate(order)]
    write_csv(folder / "fare_transactions.csv", TIDES, shuffled)
    return whole


def _tap(token: str, stop: str, at: dt.datetime, action: str) -> dict[str, Any]:
    return {
        "service_date": at.date(),
        "event_timestamp": (at + dt.timedelta(hours=8)).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        ),  # Los Angeles in winter
        "amount": "1.75",
        "currency_type": "USD",
        "fare_action": action,
        "stop_id": stop,
        "num_riders": 1,
        "fare_media_id": "Smart card or ticket",
        "fare_capped": "false",
        "token_id": token,
    }


def gtfs_ride(folder: Path, number: int = 400) -> None:
    """rider_trip.txt: every tenth rider travels after midnight of the service day, which GTFS writes as 24:30:00 and so on."""
    rows = []
    for n, (o, d, at, token) in enumerate(rides(number)):
        hour = at.hour + (24 if n % 10 == 0 and at.hour < 8 else 0)
        rows.append({
            "rider_id": token, "agency_id": "A", "trip_id": f"T{n % 20}", "boarding_stop_id": o, "boarding_stop_sequence": 1,
            "alighting_stop_id": d, "alighting_stop_sequence": 4, "service_date": at.strftime("%Y%m%d"),
            "boarding_time": f"{hour}:{at.minute:02d}:00", "alighting_time": f"{hour}:{at.minute:02d}:59", "rider_type": 0,
            "fare_paid": "1.50", "transaction_type": 3, "fare_media": 7, "transfer_status": 0,
        })  # fmt: skip
    write_csv(folder / "rider_trip.txt", GTFS_RIDE, rows)


def taxi_zones(folder: Path) -> None:
    boroughs = ["Manhattan", "Manhattan", "Manhattan", "Queens", "Queens", "Brooklyn", "Brooklyn", "Bronx"]
    lines = [f'{n + 1},"{b}","Zone {n + 1}","Boro Zone"' for n, b in enumerate(boroughs)]
    (folder / "taxi_zone_lookup.csv").write_text(
        '"LocationID","Borough","Zone","service_zone"\n' + "\n".join(lines) + "\n"
    )


def tlc(folder: Path, kind: str = "yellow", number: int = 500) -> None:
    """Trip records of one kind of car. Of for-hire vehicles the zones are doubles with gaps, as they are published."""
    made = rides(number)
    places = [[STOPS.index(r[end]) + 1 for r in made] for end in (0, 1)]
    taken = pa.array([r[2] for r in made], pa.timestamp("us"))
    left = pa.array([r[2] + dt.timedelta(minutes=12) for r in made], pa.timestamp("us"))
    if kind == "fhv":
        columns = {
            "dispatching_base_num": ["B00001"] * number, "pickup_datetime": taken, "dropOff_datetime": left,
            "PUlocationID": pa.array([float(p) if n % 50 else None for n, p in enumerate(places[0])]),
            "DOlocationID": pa.array([float(p) for p in places[1]]), "SR_Flag": pa.nulls(number),
            "Affiliated_base_number": ["B00001"] * number,
        }  # fmt: skip
    else:
        letter = {"yellow": "t", "green": "l"}[kind]
        columns = {
            "VendorID": pa.array([2] * number, pa.int32()), f"{letter}pep_pickup_datetime": taken, f"{letter}pep_dropoff_datetime": left,
            "passenger_count": pa.array([1] * number), "trip_distance": pa.array([2.5] * number),
            "RatecodeID": pa.array([1] * number), "store_and_fwd_flag": ["N"] * number,
            "PULocationID": pa.array(places[0], pa.int32()), "DOLocationID": pa.array(places[1], pa.int32()),
            "payment_type": pa.array([1] * number), "fare_amount": pa.array([12.5] * number), "total_amount": pa.array([15.0] * number),
        }  # fmt: skip
    parquet.write_table(pa.table(columns), folder / f"{kind}_tripdata_2026-03.parquet")


def bikes(folder: Path, number: int = 400) -> None:
    rows = [
        {
            "ride_id": f"{n:016X}", "rideable_type": "classic_bike", "started_at": at.strftime("%Y-%m-%d %H:%M:%S.123"),
            "ended_at": (at + dt.timedelta(minutes=9)).strftime("%Y-%m-%d %H:%M:%S.456"), "start_station_name": f"Stop {o}",
            "start_station_id": o, "end_station_name": f"Stop {d}", "end_station_id": d, "start_lat": 34.0, "start_lng": -118.0,
            "end_lat": 34.1, "end_lng": -118.1, "member_casual": "member",
        }
        for n, (o, d, at, _) in enumerate(rides(number))
    ]  # fmt: skip
    write_csv(folder / "202603-tripdata.csv", BIKES, rows)


def stations(folder: Path, *, version: int) -> None:
    """station_information.json; from version 3 on, names come with their language."""
    listed = [
        {
            "station_id": s,
            "name": f"Stop {s}" if version < 3 else [{"text": f"Stop {s}", "language": "en"}],
            "lat": 34 + n / 100,
            "lon": -118 + n / 100,
        }
        for n, s in enumerate(STOPS)
    ]
    (folder / "station_information.json").write_text(
        json.dumps({"last_updated": 1, "ttl": 0, "version": f"{version}.0", "data": {"stations": listed}})
    )
