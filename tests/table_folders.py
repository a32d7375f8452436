"""Folders of tables as agencies publish them: by origin and time, with totals of both, and an `audit.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS = 24, 10


def truth(rng: np.random.Generator, small: float = 0.0) -> NDArray[np.int64]:
    """Counts by origin and time, a share of them below 5."""
    counts = rng.integers(20, 200, (ROWS, COLUMNS))
    few = rng.random(counts.shape) < small
    counts[few] = rng.integers(0, 5, int(few.sum()))
    return counts


def without(counts: NDArray[Any], hidden: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The counts with some left blank."""
    return np.where(hidden, np.nan, counts.astype(float))


def written(
    at: Path, both: NDArray[Any], origin: Any, time: Any, said: str = "", of_both: str = "", top: str = ""
) -> Path:
    """A folder with the three tables; `said` is declared of each, `of_both` of the first."""
    at.mkdir(parents=True, exist_ok=True)
    parts = [top]
    for name, keys, given in (
        ("both", ["origin", "time"], both),
        ("origin", ["origin"], origin),
        ("time", ["time"], time),
    ):
        counts = np.asarray(given, dtype=float)
        lines = [
            ",".join(
                [*(f"{key[0]}{i:02d}" for key, i in zip(keys, place, strict=True)), _field(counts[place])]
            )
            for place in np.ndindex(counts.shape)
        ]
        (at / f"{name}.csv").write_text(
            "\n".join([",".join([*keys, "count"]), *lines]) + "\n", encoding="utf-8"
        )
        own = of_both if name == "both" else ""
        parts.append(f'[[table]]\nname = "{name}"\nfile = "{name}.csv"\nkeys = {keys!r}\n{said}\n{own}')
    (at / "audit.toml").write_text("\n".join(parts) + "\n", encoding="utf-8")
    return at


def _field(count: float) -> str:
    return "" if np.isnan(count) else f"{count:.10g}"
