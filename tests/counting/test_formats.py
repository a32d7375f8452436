"""Several time formats at once: the first that fits counts, ISO 8601 among others, on both paths of counting alike."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np

import cbdp
from cbdp.counting import Clock, count
from cbdp.counting.recount import recount

UNIVERSE = cbdp.Universe(day=cbdp.days("2020-01-01", "2020-12-31"), time=cbdp.periods("00:00", "24:00", "1h"))


def test_iso_stands_among_other_formats(tmp_path: Path) -> None:
    """A third in each form; without "iso" a declared format is the only one; what fits none is dropped."""
    rng = np.random.default_rng(0)
    start = dt.datetime(2020, 1, 1)  # noqa: DTZ001
    moments = [start + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 366 * 1440, 300)]
    forms = [
        lambda t: t.isoformat(),
        lambda t: t.strftime("%d/%m/%Y %H:%M"),
        lambda t: t.strftime("%b %d %Y %I:%M %p"),
    ]
    lines = [forms[n % 3](t) for n, t in enumerate(moments)]
    (tmp_path / "t.csv").write_text("\n".join(["at", *lines, "soon"]) + "\n")
    columns = {"day": "at", "time": "at"}
    for formats, read in (
        (("iso", "%d/%m/%Y %H:%M", "%b %d %Y %I:%M %p"), {0, 1, 2}),
        (("%d/%m/%Y %H:%M", "iso"), {0, 1}),
        (("%d/%m/%Y %H:%M",), {1}),
        (("iso",), {0}),
        (None, {0}),
    ):
        clock = Clock(format=formats)
        made = count(str(tmp_path / "t.csv"), UNIVERSE, columns=columns, clock=clock)
        again = recount(str(tmp_path / "t.csv"), UNIVERSE, columns=columns, clock=clock).counts()
        assert (made.index.tolist(), made.value.tolist()) == (again[0].tolist(), again[1].tolist())
        wanted = sorted(
            (t.date().isoformat(), f"{t.hour:02d}:00") for n, t in enumerate(moments) if n % 3 in read
        )
        found = [
            UNIVERSE.unrank(int(i)) for i, v in zip(made.index, made.value, strict=True) for _ in range(v)
        ]
        assert sorted(found) == wanted
