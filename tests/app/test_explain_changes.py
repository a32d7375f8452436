"""`cbdp check` shows how much one unit can change each table."""

from __future__ import annotations

from pathlib import Path

from small_city import plan_of

from cbdp.forecast import explain
from cbdp.privacy.unit import Person


def _unit(text: str) -> tuple[str, str]:
    return ("[mechanism]", f"unit = {{ {text} }}\n[mechanism]")


def _table(said: str, title: str) -> dict[str, list[str]]:
    lines = said[said.index(title) :].split("\n")[2:]
    rows = [line.split() for line in lines[: lines.index("")]]
    return {row[0]: row[1:] for row in rows}


def test_the_numbers_are_those_that_the_noise_goes_by(city: Path) -> None:
    """L1, length, counts, one count, and the length over a week; of every measured table."""
    plan = plan_of(city, _unit('person = "card", max_trips = 3, per = "day", apart = "time"'))
    assert plan.unit == Person("card", 3, "day", "time")
    found = _table(explain(plan).text, "One day of one person can change")
    assert set(found) == {a.feature for a in plan.mechanism.answers()}
    assert found["total"] == ["3", "3", "1", "3", "21"]
    assert found["singleton"] == ["3", "1.73", "3", "1", "12.1"], "days are pooled: lengths add up"
    for name, row in found.items():
        assert int(row[0]) == plan.mechanism.change(name).l1


def test_of_a_whole_release_there_is_no_week(city: Path) -> None:
    """And without `apart`, it is said what that would do; with a trip as the unit there is nothing to say."""
    said = explain(plan_of(city, _unit('person = "card", max_trips = 3'))).text
    assert _table(said, "One person can change")["zone"] == ["3", "3", "3", "3"]
    assert 'With apart = "time"' in said
    assert "can change" not in explain(plan_of(city)).text
