"""The README of a release: the publisher's words, ε with its unit, the caveat of people, and how to cite it."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from released import city_features, release_of
from spoken_about import FULL

import cbdp
from cbdp.release import About
from cbdp.release.release import Release
from cbdp.release.series import InSeries


def readme(release: Release, folder: Path) -> str:
    release.save(folder)
    return (folder / "README.md").read_text("utf-8")


def test_the_publisher_s_words_are_there(tmp_path: Path) -> None:
    """Title, place, period, time zone, publisher, licence and contact; what Markdown would swallow is escaped."""
    text = readme(replace(release_of("constraint-based"), about=FULL), tmp_path / "out")
    assert text.startswith("# Trips -- all of them\n\nZürich & \\<around\\> · March 2026\n")
    assert "Times are local times of Europe/Zurich." in text
    assert "> Transit “Authority”. Trips -- all of them. Zürich & \\<around\\> · March 2026." in text
    assert text.endswith("## Licence\n\nCC BY 4.0\n\nContact: data@example.org\n")


def test_without_words_it_says_whom_to_ask(tmp_path: Path) -> None:
    """No licence is not a licence."""
    text = readme(release_of("laplace"), tmp_path / "out")
    assert text.startswith("# Published trips\n")
    assert text.endswith("No licence is stated. Ask the publisher before you use the data.\n")
    some = readme(replace(release_of("laplace"), about=About(publisher="Transit")), tmp_path / "other")
    assert "Ask Transit before" in some


def test_epsilon_stands_with_its_unit_and_factor(tmp_path: Path) -> None:
    """e is below 2.8; a person's trips are counted up to a bound, which the README says."""
    text = readme(release_of("constraint-based"), tmp_path / "out")
    assert "**ε = 1 for each trip**" in text
    assert "at most a factor of 2.8 " in text
    person = readme(release_of("person"), tmp_path / "person")
    assert "**ε = 2 for each person**" in person
    assert "At most 3 trips of each person are counted, chosen at random." in person
    assert "true numbers of trips may be higher" in person
    assert "trips of each person" not in text


def test_rho_stands_with_epsilon_and_delta(tmp_path: Path) -> None:
    """What is paid for in ρ states all three."""
    mechanism = cbdp.ConstraintBased(city_features(), rho="1/8", law="gaussian")
    text = readme(mechanism.release(np.full(city_features().universe.size, 5)), tmp_path / "out")
    assert re.search(r"\*\*ε = \S+, δ = \S+ \(ρ = 0\.125\) for each trip\*\*", text)


def test_python_in_the_readme_runs(tmp_path: Path, monkeypatch) -> None:
    """What it tells people to type works in the folder."""
    text = readme(release_of("constraint-based"), tmp_path / "out")
    (code,) = re.findall("```python\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path / "out")
    found: dict[str, object] = {}
    exec(code, found)  # noqa: S102 - our own words
    assert found["release"].total == release_of("constraint-based").total  # type: ignore[attr-defined]


def test_tables_that_do_not_add_up_are_not_said_to(tmp_path: Path) -> None:
    """Each mechanism's README says what is true of it."""
    apart = readme(release_of("threshold-laplace"), tmp_path / "apart")
    assert "do not combine numbers of different tables" in apart
    assert "add up to each other" not in apart
    assert "No differential privacy is promised" in apart or "ε = " in apart


def test_a_release_of_a_series_names_it(tmp_path: Path) -> None:
    """Series, period, stage and version, and its days as the period of the release."""
    day = dt.date(2026, 3, 2)
    series = InSeries("daily trips", 2, "daily", "2026-03-02", day, day, stage="preliminary")
    text = readme(replace(release_of("laplace"), series=series), tmp_path / "out")
    assert (
        "This is the preliminary release of 2026-03-02 in the daily series “daily trips”, version 2." in text
    )
    assert "\n2 March 2026\n" in text


def test_where_types_were_chosen_it_says_to_use_estimates(tmp_path: Path) -> None:
    """Whole trips on few types: a single count is then no estimate."""
    few = cbdp.ConstraintBased(city_features(), 1, rounding="few")
    text = readme(few.release(np.full(city_features().universe.size, 5)), tmp_path / "out")
    assert "To read single rows of “singleton” use `estimate`" in text
    assert "use `estimate`" not in readme(release_of("laplace"), tmp_path / "other")


def test_sums_are_not_praised(tmp_path: Path) -> None:
    """It names the sums that were measured, sends all others to `ask`, and says why a count may stand at an end of its interval."""
    release = release_of("constraint-based").with_intervals()
    text = " ".join(readme(release, tmp_path / "out").split())
    measured = [m.feature for m in release.measurements if m.feature != "singleton"]
    found = re.search(r"were measured as such \(([^)]*)\)", text)
    assert found is not None
    assert set(re.split(r", | and ", found[1])) == set(measured)
    assert (
        "Any other sum adds up the errors of its parts: `release.ask` below and `cbdp ask` tell its interval"
        in text
    )
    assert "sums of many are good" not in text
    assert "a count may stand at one end of its interval" in text
