"""Runs with running totals that die at every instant that matters: each day once, no sum drawn without a charge, days that add up."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from daily_city import CONFIG, write_daily_city

import cbdp
from cbdp.app import series
from cbdp.app.series import run_series
from cbdp.config import read
from cbdp.forecast.running import REDRAWN_SUMS
from cbdp.ledger import Ledger
from cbdp.mechanisms import continual
from cbdp.release.series import RUNNING_TOTALS

RUNNING_CONFIG = (
    CONFIG.replace("epsilon = 1", 'rho = 0.5\nlaw = "gaussian"')
    .replace("per_day = 3, per_30_days = 60", "per_day = 99")
    .replace("start = 2026-03-01", 'start = 2026-03-01\nrunning = { tables = ["zone"], periods = 9 }')
)
DEAD = 9

Function = Callable[..., Any]


def dies_after(real: Function, times: int) -> Function:
    """The same function, in whose last call the process ends as if it were killed: nothing is tidied up."""
    calls = iter(range(times, 0, -1))

    def made(*args: Any, **options: Any) -> Any:
        done = real(*args, **options)
        if next(calls, 0) == 1:
            os._exit(DEAD)
        return done

    return made


def attempt(city: Path, until: dt.date, death: tuple[Any, str, int] | None) -> None:
    """One run in a process of its own, which dies where it is told to; sums that are drawn are noted on disk."""
    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (DEAD if death else 0)
        return
    code = 1
    try:
        drawing = continual.measure_sums

        def noted(sums: Any, tables: Any, *rest: Any) -> Any:
            with (city / "draws").open("a") as out:
                out.write(f"{len(tables)}\n")
            return drawing(sums, tables, *rest)

        continual.measure_sums = noted
        if death is not None:
            owner, name, times = death
            setattr(owner, name, dies_after(getattr(owner, name), times))
        with Ledger.view(city / "ledger.sqlite") if (city / "ledger.sqlite").exists() else _nothing() as held:
            new = held is None or not held.charges()
        run_series(read(city / "cbdp.toml"), until, create_ledger=new)
        code = 0
    finally:
        os._exit(code)


class _nothing:  # noqa: N801 - stands for a ledger that is not there
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


@pytest.mark.forks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_whatever_instant_a_run_dies_at(tmp_path: Path) -> None:
    """After the span's charge, after the release's, after the sums, after the files, after the note, before and after the state is kept."""
    city = write_daily_city(tmp_path, days=4, config=RUNNING_CONFIG)
    first, second, third = (dt.date(2026, 3, n) for n in (1, 2, 3))
    deaths: list[tuple[dt.date, tuple[Any, str, int] | None]] = [
        (first, (Ledger, "reserve", 1)),  # the span's
        (first, (Ledger, "reserve", 1)),  # the release's
        (first, (series, "release_in_series", 1)),
        (first, (cbdp.Release, "save", 2)),  # the first is the rehearsal
        (first, None),
        (second, (series, "release_in_series", 1)),
        (second, (Ledger, "released", 1)),
        (third, (series, "_write", 1)),
        (third, None),
    ]
    for until, death in deaths:
        attempt(city, until, death)
    _check(city)


def _check(city: Path) -> None:
    with Ledger.view(city / "ledger.sqlite") as ledger:
        ledger.verify()
        charges, lost = ledger.charges(), ledger.unfinished()
    released = [c for c in charges if c.what == "constraint-based" and c not in lost]
    assert [c.part and c.part.period for c in released] == [f"2026-03-0{n}" for n in (1, 2, 3)]
    assert sum(c.what == RUNNING_TOTALS for c in charges) == 1
    assert not [c for c in lost if c.part and c.part.stage == RUNNING_TOTALS]
    draws = Counter(int(line) for line in (city / "draws").read_text().split())
    again = Counter(int(c.request.rpartition(":")[2]) for c in charges if c.what == REDRAWN_SUMS)
    assert set(draws) == {1, 2, 3}
    for number, many in draws.items():
        assert many <= 1 + again[number]
    made = [cbdp.load(city / "releases" / f"2026-03-0{n}") for n in (1, 2, 3)]
    added = np.cumsum([release.counts("zone") for release in made], axis=0)
    for release, before in zip(made[1:], added, strict=False):
        assert release.running is not None
        assert release.running.tables["zone"].before.tolist() == before.tolist()
