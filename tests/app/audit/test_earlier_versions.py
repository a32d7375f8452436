"""Folders that versions 0.1 and 0.2 wrote, with their configuration and ledger: judged by their own rules, and not paid for twice."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cbdp.app.audit import audit_release
from cbdp.app.plan import plan
from cbdp.config import read
from cbdp.ledger import Ledger
from cbdp.release.files import fingerprint, read_manifest
from cbdp.release.manifest import manifest_bytes

VERSIONS = ("0.1.0", "0.2.0")
STORED = Path(__file__).parent / "data"


@pytest.fixture(params=VERSIONS)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with zipfile.ZipFile(STORED / f"released-{request.param}.zip") as stored:
        stored.extractall(tmp_path)
    return tmp_path


def test_an_earlier_release_passes_the_audit(earlier: Path) -> None:
    """Its expected counts follow from the code of its version: the audit says that it did not judge them, and judges all else."""
    for config in (None, earlier / "cbdp.toml"):
        audit = audit_release(earlier / "release", config=config)
        assert (audit.verdict, audit.of("contradicts")) == ("clear", [])
        assert (
            sum("whether they follow from the noisy answers was not checked" in w for w in audit.left_out)
            == 1
        )


def test_an_earlier_release_that_was_changed_is_found(earlier: Path) -> None:
    """Whole trips are still judged by the estimates that are published beside them."""
    release = earlier / "release"
    path = release / "trips.parquet"
    table = pq.read_table(path)
    count = np.asarray(table["count"]).copy()
    count[0] += 1
    pq.write_table(table.set_column(table.column_names.index("count"), "count", pa.array(count)), path)
    manifest = dict(read_manifest(release))
    manifest["files"] = {**manifest["files"], "trips.parquet": fingerprint(path)}
    (release / "manifest.json").write_bytes(manifest_bytes(manifest))
    assert audit_release(release).verdict == "contradicts"


def test_the_request_of_an_earlier_release_is_the_same(earlier: Path) -> None:
    """A setting that came later leaves it alone: the same release is not paid for again."""
    config = (earlier / "cbdp.toml").read_text("utf-8").replace('path = "release"', 'path = "again"')
    (earlier / "cbdp.toml").write_text(config, "utf-8")
    with Ledger.view(earlier / "ledger.sqlite") as ledger:
        charges = [e.fields["request"] for e in ledger.entries() if e.event == "reserved"]
    assert [c.partition(":")[0] for c in charges] == [plan(read(earlier / "cbdp.toml"), must_fit=False).asked]
