"""Results on disk: one Parquet part per finished run, written whole or not at all, and merged now and then."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness.specs import Limits, Spec

OK, TIME, MEMORY, DIED, FAILED = "ok", "over time", "over memory", "died", "failed"
NOT_POSSIBLE = "not possible"  # such a mechanism cannot be on such data
ABANDONED = 3600  # seconds after which nobody writes a part any more
MERGE = 256  # parts that are few enough to stay


@dataclass(frozen=True)
class Row:
    """What became of one run."""

    spec: Spec
    version: str
    status: str
    detail: str = ""
    limits: Limits = field(default_factory=Limits)
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Spec, str]:
        return self.spec, self.version


def _schema() -> Any:
    import pyarrow as pa

    texts = ("task", "data", "mechanism", "epsilon", "version", "status", "detail")
    return pa.schema(
        [(name, pa.string()) for name in texts]
        + [("seed", pa.int64()), ("seconds", pa.float64()), ("bytes", pa.int64())]
        + [("metrics", pa.map_(pa.string(), pa.float64()))]
    )


@dataclass(frozen=True)
class Store:
    """A folder of parts."""

    folder: Path

    def write(self, rows: Iterable[Row]) -> Path:
        """Add a part. It is there as a whole, or, if the process is killed, not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.folder.mkdir(parents=True, exist_ok=True)
        made = [
            {
                **row.spec._asdict(),
                "version": row.version,
                "status": row.status,
                "detail": row.detail,
                "seconds": row.limits.seconds,
                "bytes": row.limits.bytes,
                "metrics": list(row.metrics.items()),
            }
            for row in rows
        ]
        name = f"part-{secrets.token_hex(8)}.parquet"
        partial = self.folder / f".{name}.partial"
        pq.write_table(pa.Table.from_pylist(made, schema=_schema()), partial)
        os.replace(partial, self.folder / name)  # noqa: PTH105 - what the docstring promises is this call's
        return self.folder / name

    def parts(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"), key=lambda p: p.stat().st_mtime_ns)

    def rows(self) -> list[Row]:
        """Every result, one for each run and version: the one written last."""
        return list({row.key: row for part in self.parts() for row in _read(part)}.values())

    def merge(self) -> None:
        """Make one part of many. A crash in between leaves results twice, which reading mends."""
        parts = self.parts()
        if len(parts) > MERGE:
            self.write(self.rows())
            for part in parts:
                part.unlink(missing_ok=True)
        for partial in self.folder.glob(".part-*.partial"):
            if time.time() - partial.stat().st_mtime > ABANDONED:  # a younger one may still be written
                partial.unlink(missing_ok=True)


def _read(part: Path) -> list[Row]:
    import pyarrow.parquet as pq

    return [
        Row(
            Spec(r["task"], r["data"], r["mechanism"], r["epsilon"], r["seed"]),
            r["version"],
            r["status"],
            r["detail"],
            Limits(r["seconds"], r["bytes"]),
            dict(r["metrics"]),
        )
        for r in pq.read_table(part).to_pylist()
    ]
