"""Whether an untouched release passes its own audit: `init`, `release` and `audit` on networks of very different shapes.

Claim: an untouched release passes its own audit, whatever the network (docs/results/audited.md).

python -m benchmarks audited [--networks 50] [--first 0] [--largest 4000] [--csv FILE] [--keep FOLDER]

Every network is generated from its number: four stops to thousands, a day to sixty, rows that are trips, counts, taps or trips of
persons, stops in a line, in a grid or in far towns, names with commas, quotes and other scripts. The three commands are run as a
city runs them; whatever the audit calls a contradiction is a fault of ours, for nobody touched the folder.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.markdown import markdown

Ints = NDArray[np.int64]
Command = Callable[[Sequence[str]], tuple[int, str]]  # arguments of cbdp → exit code, and what it printed

KINDS = ("trips", "counts", "taps", "persons")
ARRANGEMENTS = ("line", "grid", "towns", "ring", "scattered")
NAMES = ("plain", "numbers", "zeros", "words", "scripts", "marks")
EPSILONS = ("0.1", "0.5", "1.0", "3", "10")
FIRST_DAY = dt.date(2026, 3, 2)
MAX_DAILY_TYPES = (
    100_000  # trip types up to which days are told apart: a release of more takes minutes, and fifty hours
)
MAX_HOURLY_STOPS = 300  # stops up to which hours are told apart, but where all defaults are kept
GROWTH = 1.6  # of the stops with the number of the network: above 1, most networks are small
SECONDS_PER_COMMAND = 1800


@dataclass(frozen=True)
class Network:
    """A made-up network, what its files look like, and what its owner changes in the configuration that `init` writes."""

    number: int
    stops: int
    days: int
    rows: int
    kind: str
    arrangement: str
    names: str
    zones: bool  # whether the file of stops has a column of zones; otherwise they are made
    by_day: bool  # whether days are counted apart
    epsilon: str
    law: str
    estimator: str
    rounding: str
    parquet: bool

    @property
    def unit(self) -> str:
        return "person" if self.kind in ("taps", "persons") else "trip"


def network(number: int, many: int, largest: int = 4000) -> Network:
    """Network number 0 … many − 1: the stops grow from 4 to the largest, all else follows from the number alone."""
    rng = np.random.default_rng([27, number])
    stops = round(4 * (largest / 4) ** ((number / max(1, many - 1)) ** GROWTH))
    days = int(rng.choice([1, 2, 5, 7, 14, 28, 31, 60]))
    kind = KINDS[number % len(KINDS)]
    rows = int(rng.choice([1, 5, 30])) * stops * int(rng.choice([1, 3, days])) + 40
    estimator = "posterior" if number % 3 else "projection"
    return Network(
        number, stops, days, min(rows, 400_000), kind,
        arrangement=str(rng.choice(ARRANGEMENTS)),
        names=NAMES[number % len(NAMES)],
        zones=bool(rng.random() < 0.5),
        by_day=bool(rng.random() < 0.5) and stops * stops * days * 24 <= MAX_DAILY_TYPES,
        epsilon=str(rng.choice(EPSILONS)),
        law="gaussian" if rng.random() < 0.4 else "geometric",
        estimator=estimator,
        rounding="few" if estimator == "posterior" and rng.random() < 0.3 else "nearest",
        parquet=bool(rng.random() < 0.4),
    )  # fmt: skip


def stop_ids(network: Network) -> list[str]:
    """The stops' ids: as agencies write them, and as nobody expects them."""
    width = len(str(network.stops))
    marks = (
        "{}, upper",
        'the "{}"',
        "{}; C/D & E",
        "={}+1",
        "<b>{}</b>",
        "{}'s",
        "@{}",
        "#{}",
        "{} | {}",
        "-{}",
    )
    scripts = (
        "Łódź {}",
        "北京站{}",
        "Αθήνα {}",
        "Ünter {}",
        "ش{}",
        "São João {}",
        "🚲{}",
        "Ko\u0301pavogur {}",
    )
    styles: dict[str, Callable[[int], str]] = {
        "plain": lambda n: f"S{n:0{width}}",
        "numbers": lambda n: str(70_001 + 3 * n),
        "zeros": lambda n: f"{n:0{width + 2}}",
        "words": lambda n: (
            f"Corner of {n}th Street and a name that does not end before the margin of the page does, platform {n % 7}"
        ),
        "scripts": lambda n: scripts[n % len(scripts)].format(n),
        "marks": lambda n: marks[n % len(marks)].format(n, n),
    }
    return [styles[network.names](n) for n in range(network.stops)]


def places(network: Network, rng: np.random.Generator) -> NDArray[np.float64]:
    """Where the stops lie: latitude and longitude."""
    n = network.stops
    if network.arrangement == "line":
        at = np.stack([np.linspace(0, 0.002 * n, n), np.zeros(n)], axis=1)
    elif network.arrangement == "grid":
        side = int(np.ceil(np.sqrt(n)))
        at = 0.004 * np.stack(np.divmod(np.arange(n), side), axis=1)
    elif network.arrangement == "towns":
        towns = rng.uniform(0, 2, size=(max(2, n // 60), 2))
        at = towns[rng.integers(len(towns), size=n)] + rng.normal(0, 0.01, size=(n, 2))
    elif network.arrangement == "ring":
        angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
        at = 0.05 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    else:
        at = rng.normal(0, 0.05, size=(n, 2))
    located: NDArray[np.float64] = np.round(at + np.array([47.0, 8.0]), 6)
    return located


def journeys(network: Network, rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints]:
    """Origin, destination, minute since the first day began, and card of every journey: few stops and few cards have most."""
    busy = 1 / np.arange(1, network.stops + 1) ** 0.9
    ends = rng.choice(network.stops, size=(2, network.rows), p=busy / busy.sum())
    peaks = rng.normal([[8 * 60], [17 * 60 + 30], [13 * 60]], [[50], [70], [200]], size=(3, network.rows))
    minute = peaks[rng.integers(3, size=network.rows), np.arange(network.rows)].astype(np.int64) % 1380
    when = rng.integers(network.days, size=network.rows) * 1440 + minute
    cards = max(2, network.rows // 8)
    card = np.minimum(rng.geometric(4 / cards, size=network.rows), cards)
    return ends[0], ends[1], when, card


def write_files(network: Network, folder: Path) -> tuple[Path, Path]:
    """The file of rows and that of stops."""
    rng = np.random.default_rng([28, network.number])
    ids, at = stop_ids(network), places(network, rng)
    stops = folder / "stops.csv"
    areas = [f"Zone {'N' if y > 47 else 'S'}{'E' if x > 8 else 'W'}" for y, x in at]
    with stops.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(
            ["stop_id", "stop_name", "stop_lat", "stop_lon", *(["zone"] if network.zones else [])]
        )
        for n, key in enumerate(ids):
            name = f"{key} stop" if network.names in ("scripts", "marks") else f"Stop {n}"
            writer.writerow([key, name, *at[n], *([areas[n]] if network.zones else [])])
    header, rows = _rows(network, ids, *journeys(network, rng))
    path = folder / f"{network.kind}.{'parquet' if network.parquet else 'csv'}"
    if network.parquet:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(header)
            writer.writerows(rows)
    return path, stops


def _rows(
    network: Network, ids: Sequence[str], origin: Ints, destination: Ints, when: Ints, card: Ints
) -> tuple[list[str], list[tuple[str | int, ...]]]:
    start = dt.datetime.combine(FIRST_DAY, dt.time())

    def moment(minute: int) -> str:
        return (start + dt.timedelta(minutes=minute)).strftime("%Y-%m-%d %H:%M")

    each = list(zip(origin.tolist(), destination.tolist(), when.tolist(), card.tolist(), strict=True))
    if network.kind == "counts":
        summed = Counter((w // 1440, w % 1440 // 60, o, d) for o, d, w, _ in each)
        summed_rows: list[tuple[str | int, ...]] = [
            (str(FIRST_DAY + dt.timedelta(days=day)), hour, ids[o], ids[d], many)
            for (day, hour, o, d), many in sorted(summed.items())
        ]
        return ["date", "hour", "from", "to", "count"], summed_rows
    if network.kind == "taps":
        taps = [(w, c, o, "on") for o, _, w, c in each] + [
            (w + 5 + (o + d) % 40, c, d, "off") for o, d, w, c in each
        ]
        return ["card", "time", "stop", "tap"], [
            (f"C{c}", moment(w), ids[s], tap) for w, c, s, tap in sorted(taps)
        ]
    rows: list[tuple[str | int, ...]] = [
        (f"C{c}", moment(w), ids[o], ids[d]) for o, d, w, c in sorted(each, key=lambda e: e[2])
    ]
    if network.kind == "trips":
        return ["start_time", "from_stop", "to_stop"], [row[1:] for row in rows]
    return ["card_id", "start_time", "from_stop", "to_stop"], rows


def configured(network: Network, text: str) -> str:
    """The configuration of `init` with what the owner of this network changes; network 0 of every five keeps all defaults."""
    if network.number % 5 == 0:
        return text
    law = "" if network.law == "geometric" else 'law = "gaussian"\ndelta = 1e-6\n'
    text = re.sub(r"^epsilon = \S+", f"{law}epsilon = {network.epsilon}", text, flags=re.M)
    text = re.sub(r"^cap = \S+", f"cap = {network.epsilon}", text, flags=re.M)
    if law:
        text = re.sub(r"^(cap = \S+.*)$", r"\1\ncap_delta = 1e-6", text, flags=re.M)
    if network.kind == "persons":
        text = re.sub(
            r'^unit = "trip"', 'unit = { person = "card_id", max_trips = 3, per = "day" }', text, flags=re.M
        )
    if network.by_day and not re.search(r"^days = ", text, flags=re.M):
        last = FIRST_DAY + dt.timedelta(days=network.days - 1)
        days = f'days = {{ first = "{FIRST_DAY}", last = "{last}" }}'
        text = text.replace("origin_is_destination =", f"{days}\norigin_is_destination =", 1)
    if network.estimator == "projection":
        text = text.replace('preset = "best"', 'preset = "paper"').replace(
            'budget = "balanced"', 'budget = "uniform"'
        )
    if network.stops > MAX_HOURLY_STOPS:
        text = text.replace('every = "1h"', 'every = "24h"')
    if network.rounding == "few":
        text = text.replace('solver = "newton"', 'rounding = "few"\nsolver = "newton"')
    return text


@dataclass(frozen=True)
class Outcome:
    """What became of a network: how long each command took, and what the audit said of a folder that nobody touched."""

    network: Network
    types: int
    seconds: tuple[float, float, float]  # init, release, audit
    verdict: str  # clear, weakness, contradicts; or the command that failed
    why: str = ""

    HEADER = ("network", "stops", "days", "rows", "kind", "unit", "arrangement", "ids", "zones", "days apart", "ε", "noise", "estimator",
              "rounding", "trip types", "init s", "release s", "audit s", "verdict")  # fmt: skip

    def row(self) -> list[str]:
        n = self.network
        kept = n.number % 5 == 0  # all defaults
        return [
            str(n.number), f"{n.stops:,}", str(n.days), f"{n.rows:,}", n.kind,
            n.unit if n.kind == "taps" or not kept else "trip", n.arrangement, n.names, "given" if n.zones else "made",
            "yes" if n.by_day and not kept else "no", "1" if kept else n.epsilon, "geometric" if kept else n.law,
            "posterior" if kept else n.estimator, "nearest" if kept else n.rounding, f"{self.types:,}",
            *(f"{s:.1f}" for s in self.seconds), self.verdict,
        ]  # fmt: skip


def outcome(network: Network, folder: Path, command: Command) -> Outcome:
    """The three commands on one network, in a folder of its own."""
    rows, stops = write_files(network, folder)
    config, release, found = folder / "cbdp.toml", folder / "release", folder / "findings.json"
    seconds = [0.0, 0.0, 0.0]
    steps = (
        ["init", str(rows), "--stops", str(stops), "--out", str(config)],
        # a card of few has many trips here, and no bound keeps half of them: the owner has seen it and goes on
        ["release", str(config), "--create-ledger", "--accept-dropped"],
        ["audit", str(release), "--config", str(config), "--json", str(found)],
    )
    for at, arguments in enumerate(steps):
        begun = time.perf_counter()
        code, printed = command(arguments)
        seconds[at] = time.perf_counter() - begun
        if code and not (arguments[0] == "audit" and found.is_file()):
            return Outcome(network, 0, tuple(seconds), f"{arguments[0]} failed", printed)  # type: ignore[arg-type]
        if arguments[0] == "init":
            config.write_text(configured(network, config.read_text("utf-8")), "utf-8")
    audit = json.loads(found.read_text("utf-8"))
    wrong = [f for f in audit["findings"] if f["verdict"] != "clear"]
    why = "; ".join(f"{f['verdict']}: {f['title']}: {f['evidence']}" for f in wrong)
    manifest = json.loads((release / "manifest.json").read_text("utf-8"))
    return Outcome(network, int(manifest["universe"]["size"]), tuple(seconds), audit["verdict"], why)  # type: ignore[arg-type]


def as_a_process(arguments: Sequence[str]) -> tuple[int, str]:
    """A command as it is called from a shell."""
    command = [sys.executable, "-m", "cbdp", *arguments]
    utf8 = os.environ | {"PYTHONUTF8": "1"}
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_PER_COMMAND, check=False, env=utf8
        )
    except subprocess.TimeoutExpired:
        return 1, f"not done after {SECONDS_PER_COMMAND} seconds"
    return run.returncode, f"{run.stdout}\n{run.stderr}".strip()


def outcomes(numbers: Sequence[int], many: int, largest: int, keep: Path | None) -> Iterator[Outcome]:
    """The outcome of each network, the small ones first."""
    for number in numbers:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            if keep is not None:
                folder = keep / f"network-{number}"
                folder.mkdir(parents=True)
            yield outcome(network(number, many, largest), folder, as_a_process)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks audited", description=__doc__)
    parser.add_argument("--networks", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--largest", type=int, default=4000, help="stops of the largest network")
    parser.add_argument("--csv", type=Path, help="also write the table here, row by row")
    parser.add_argument("--keep", type=Path, help="keep the files of every network in this folder")
    options = parser.parse_args(argv)
    seen: list[Outcome] = []
    for result in outcomes(
        range(options.first, options.networks), options.networks, options.largest, options.keep
    ):
        seen.append(result)
        line = " ".join(result.row())
        print(
            f"{line} {result.why[-600:]}" if result.verdict != "clear" else line, file=sys.stderr, flush=True
        )
        if options.csv is not None:
            with options.csv.open("w", newline="", encoding="utf-8") as out:
                csv.writer(out).writerows([Outcome.HEADER, *(o.row() for o in seen)])
    print(markdown(Outcome.HEADER, [o.row() for o in seen]))
    refused = [o for o in seen if o.verdict not in ("clear", "weakness")]
    print(f"\n{len(seen) - len(refused)} of {len(seen)} untouched releases pass their own audit.")
    return 1 if refused else 0
