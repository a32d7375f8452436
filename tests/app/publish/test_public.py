"""A release with public counts from end to end: published, loaded, audited, charged once."""

from __future__ import annotations

from pathlib import Path

from publishing import entries, first, planned

import cbdp
from cbdp.app.publish import publish
from cbdp.estimation.invariants import INVARIANTS_NOTE

PUBLIC = ("cap = 1000", 'cap = 1000\npublic = { total = 240, time = "times.csv" }')


def test_public_counts_from_configuration_to_audit(folder: Path) -> None:
    """Met in every file, stated with what they mean, clear to an audit that has ledger, configuration and trips; ε is charged as ever."""
    (folder / "times.csv").write_text("time,count\n10:00,90\n06:00,80\n08:00,70\n")
    first(folder, PUBLIC)
    release = cbdp.load(folder / "release")
    assert release.total == 240
    assert release.counts("time").tolist() == [80, 70, 90]
    assert [m.feature for m in release.measurements] == ["zone", "singleton"]
    assert [str(m.epsilon) for m in release.measurements] == ["1/2", "1/2"]
    assert release.interval("time").low.tolist() == release.interval("time").high.tolist() == [80, 70, 90]
    assert release.manifest["public"]["meaning"] == INVARIANTS_NOTE
    page = (folder / "release" / "report.html").read_text("utf-8")
    assert "total (240 trips) and time (240 trips in 3 counts)" in page
    done = cbdp.audit_release(folder / "release", config=folder / "cbdp.toml", trips=True)
    assert done.of("contradicts") == []
    assert {f.title for f in done.findings} >= {
        "The public counts of total are met exactly",
        "The public counts of time are met exactly",
    }
    (folder / "times.csv").write_text("time,count\n06:00,80\n08:00,70\n10:00,90\n")
    publish(planned(folder))  # the same counts in another order are the same request
    assert [event for event, _ in entries(folder)].count("reserved") == 1
