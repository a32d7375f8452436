"""`cbdp check`: what a plan would release, told before anything is spent."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from small_city import plan_of

from cbdp import forecast
from cbdp.errors import InputError
from cbdp.privacy.budget import allocate
from cbdp.privacy.expected_error import DemandFacts, error_model, expected_errors


def _tail(scale: float, k: int) -> float:
    """P(|Z| > k) of two-sided geometric noise, summed term by term."""
    z = np.arange(-4000, 4001)
    weight = np.exp(-np.abs(z) / scale)
    return float(weight[np.abs(z) > k].sum() / weight.sum())


def test_noise_by_table_is_that_of_its_law(city: Path) -> None:
    """Scale is Δ/ε_i, the half width the least that holds often enough, the relative noise a part of the mean count."""
    plan = plan_of(
        city,
        ("cap = 2.0", 'cap = 2.0\nunit = { person = "card", max_trips = 3 }'),
        ('"constraint-based"', '"constraint-based"\npreset = "paper"'),
    )
    told = forecast.explain(plan)
    assert [n.feature for n in told.noise] == ["total", "time", "mode", "zone", "singleton"]
    for n in told.noise:
        assert n.scale == 3 / n.epsilon == 15
        assert _tail(15, n.half_width) <= 0.1 < _tail(15, n.half_width - 1)
        assert abs(n.expected - Fraction(60000, n.elements)) <= n.expected / 20  # to two digits
        assert n.relative == pytest.approx(n.half_width * n.elements / 60000, rel=0.05)


@pytest.mark.parametrize(
    ("feature", "relative"), [("zone", "1/100"), ("singleton", "1/10"), ("total", "1e-5")]
)
def test_epsilon_for_a_wanted_precision_is_the_least(city: Path, feature: str, relative: str) -> None:
    """At the ε found the noise is within the part asked for, and at one unit of its last digit less it is not."""
    plan = plan_of(city, ("cap = 2.0", 'cap = 2.0\nbudget = "geometric"'))
    found = forecast.epsilon_for(plan, feature, relative, 0.9)
    allowed = int(Fraction(relative) * 60000 / plan.features.size(feature))
    share = float(next(n.epsilon for n in forecast.noise_by_table(plan) if n.feature == feature))
    step = 10.0 ** (np.floor(np.log10(float(found))) - 2)
    assert _tail(1 / (share * float(found)), allowed) <= 0.1
    assert _tail(1 / (share * (float(found) - step)), allowed) > 0.1
    assert f"{float(found):.3g}" == f"{float(found):.10g}"  # three digits, no more


def test_epsilon_for_asks_for_what_it_needs(city: Path) -> None:
    """A misspelt feature and an unknown number of trips are told."""
    with pytest.raises(InputError, match="'zones' is not measured: did you mean 'zone'"):
        forecast.epsilon_for(plan_of(city), "zones", 0.1)
    plan = plan_of(city, ("expected_trips = 60000", ""))
    with pytest.raises(InputError, match=r"data\.expected_trips"):
        forecast.epsilon_for(plan, "zone", 0.1)
    assert forecast.epsilon_for(plan, "zone", 0.1, expected_trips=60000) > 0


def test_epsilon_for_a_budget_that_gives_tables_enough(city: Path) -> None:
    """With "leaves" the tables' part stops growing: a leaf's ε is found, and of a table it is said that none meets the wish."""
    plan = plan_of(city, ("cap = 2.0", 'cap = 2.0\nbudget = "leaves"'))
    found = forecast.epsilon_for(plan, "singleton", "1/200", 0.9)
    allowed = int(Fraction(1, 200) * 60000 / plan.features.size("singleton"))
    assert _tail(1 / (float(found) - 0.02), allowed) <= 0.1
    with pytest.raises(InputError, match=r"does not get within 0\.01 % by any ε: use budget 'balanced'"):
        forecast.epsilon_for(plan, "zone", "1/10000", 0.9)


def test_the_answer_states_what_it_rests_on(city: Path) -> None:
    """A wish in per cent is answered in one sentence, with the confidence and the law it is worked out by."""
    said = forecast.answer(plan_of(city), "zone", "10 %")
    found = forecast.epsilon_for(plan_of(city), "zone", "1/10")
    assert f"ε of the whole release must be at least {float(found):g}" in said
    assert "within 10 % (375 of 3,750 trips on average)" in said
    assert "90 % confidence" in said
    assert "before post-processing" in said
    with pytest.raises(InputError, match="'ten'"):
        forecast.answer(plan_of(city), "zone", "ten")


def test_wishes_are_answered_together_or_not_at_all(city: Path) -> None:
    """Each wish of the command line has its sentence; one that is wrong is refused with its value."""
    plan = plan_of(city)
    assert forecast.answers(plan, ["zone=5", "total=1"]) == [
        forecast.answer(plan, "zone", "5"),
        forecast.answer(plan, "total", "1"),
    ]
    for wrong, said in (
        ("zone=abc", "'abc'"),
        ("zone", "for example zone=5"),
        ("zones=5", "did you mean 'zone'"),
    ):
        with pytest.raises(InputError, match=said):
            forecast.answers(plan, ["zone=5", wrong])


def test_the_text_says_what_matters(city: Path) -> None:
    """Size, DAG, ε by feature, account, files and the reassurance at the end; the graph for other programs is apart."""
    paper = ('"constraint-based"', '"constraint-based"\npreset = "paper"')
    told = forecast.explain(plan_of(city, paper, ('"release"', '"release"\nexport = ["omx"]')))
    for part in (
        "6 origin × 6 destination × 4 time: 144 trip types",
        "at most a factor e^1 = 2.72",
        "5 features × 1/5, same data: 1",
        "cap 2, spent 0, this release 1, left after it 1",
        "features/zone.parquet",
        "and beside it release.omx",
        "Nothing was spent, nothing was written, and no row of the trips was read.",
    ):
        assert part in " ".join(told.text.split())
    assert told.tree in "\n".join(line[2:] for line in told.text.split("\n"))
    assert told.mermaid.startswith("graph TD")
    assert "graph TD" not in told.text + told.screen
    assert told.warnings == ()


def test_noisy_tables_are_warned_of(city: Path) -> None:
    """Above the stated bound there is a warning with the ε that would be needed; without trips there is none."""
    few = ("expected_trips = 60000", "expected_trips = 800")
    told = forecast.explain(plan_of(city, few))
    [warning] = (
        told.warnings
    )  # of zones and modes too the own noise is above it, but trip types tell them better
    assert min(n.relative or 0 for n in told.noise if n.feature in ("zone", "mode")) > 2
    assert warning.startswith(
        "singleton: its average count, 6, may be off by 67 %, more than the 50 % of output.noise_bound"
    )
    assert "67 %" in next(line for line in told.screen.split("\n") if line.startswith("singleton "))
    needed = forecast.epsilon_for(plan_of(city, few), "singleton", 0.5)
    assert f"ε would have to be {float(needed):g}," in warning
    assert forecast.explain(plan_of(city, few, ('"release"', '"release"\nnoise_bound = 0.8'))).warnings == ()
    silent = forecast.explain(plan_of(city, ("expected_trips = 60000", "")))
    assert silent.warnings == ()
    assert "Relative noise is not known" in silent.text
    assert all(n.relative is None for n in silent.noise)


def test_choices_of_a_budget_are_shown_with_their_errors(city: Path) -> None:
    """By the model each table's error is told for each budget; what serves a table makes it better than what does not."""
    told = forecast.explain(plan_of(city))
    assert list(told.choices) == ["balanced", "leaves", "tables", "uniform"]
    made = told.choices
    assert made["leaves"]["singleton"] < made["balanced"]["singleton"] < made["tables"]["singleton"]
    assert made["tables"]["total"] < made["balanced"]["total"] < made["leaves"]["total"]
    facts = DemandFacts(1, 60000)
    split = allocate(plan_of(city).features, 1, "tables")
    assert made["tables"] == pytest.approx(expected_errors(plan_of(city).features, split, facts))
    lines = [line.split() for line in told.text.split("\n")]
    shown = {line[0]: line[-5:] for line in lines if line and line[0] in made}
    order = list(plan_of(city).features.features)
    for name, errors in made.items():
        assert shown[name] == [f"{errors[f]:,.3g}" for f in order]
    assert forecast.explain(plan_of(city, ('"constraint-based"', '"laplace"'))).choices == {}


def test_a_target_is_the_best_choice_for_itself(city: Path) -> None:
    """Configured by a target, ε is shared so that its loss is below that of every named budget; `check` states the target."""
    plan = plan_of(city, ("cap = 2.0", "cap = 2.0\ntarget = { zone = 2, singleton = 1 }"))
    told = forecast.explain(plan)
    assert next(iter(told.choices)) == "optimal"
    assert "worked out for the target zone 2, singleton 1" in told.text
    alone = np.sqrt(error_model(plan.features, ["singleton"], Fraction(1), DemandFacts(1, 60000)).alone())
    best = dict(zip(plan.features.features, alone, strict=True))
    loss = {
        name: max(w * errors[f] / best[f] for f, w in (("zone", 2), ("singleton", 1)))
        for name, errors in told.choices.items()
    }
    assert (
        f"is {loss['optimal'] / 2:.2f} times what it would be if all of ε went to that table alone"
        in " ".join(told.text.split())
    )
    assert loss["optimal"] == min(loss.values())
    share = next(n.epsilon for n in told.noise if n.feature == "zone")
    assert forecast.epsilon_for(plan, "zone", "1/100") < forecast.epsilon_for(plan_of(city), "zone", "1/100")
    assert share > Fraction(3, 20)


def test_what_no_table_tells_apart_is_named(city: Path) -> None:
    """Every dimension and attribute without a table, with what that means; what is not told at all is a warning."""
    days = ("zones = {", 'days = ["weekday", "saturday", "sunday"]\nzones = {')
    told = forecast.explain(plan_of(city, days, ('preset = "odmts"\n', "")))
    assert [gap.name for gap in told.gaps] == [
        "origin",
        "origin.zone",
        "destination",
        "destination.zone",
        "day",
        "time",
        "mode",
    ]
    assert (
        "no table tells day apart: counts by day are a guess from the noisy counts of single combinations"
        in " ".join(told.text.split())
    )
    (day,) = (warning for warning in told.warnings if warning.startswith("no table tells day apart"))
    assert 'add a table by day: [[feature]] with name = "day" and by = ["day"]' in day
    share = next(n.epsilon for n in told.noise if n.feature == "singleton")
    deviation = np.sqrt(144 * 2 / 4 / np.sinh(float(share) / 2) ** 2)  # 144 trip types on each day
    (gap,) = (gap for gap in told.gaps if gap.name == "day")
    assert gap.half_width == pytest.approx(1.645 * deviation, abs=1)


def test_the_preset_tells_days_apart(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only single stops are left to their zones, which is named but no warning; without zones stops have tables."""
    days = ("zones = {", 'days = ["weekday", "saturday", "sunday"]\nzones = {')
    told = forecast.explain(plan_of(city, days))
    assert [n.feature for n in told.noise if n.feature.startswith("day")] == ["day", "day-time"]
    assert [(gap.name, gap.instead) for gap in told.gaps] == [
        ("origin", ("origin.zone",)),
        ("destination", ("destination.zone",)),
    ]
    assert "origin: tables know its origin.zone only; counts by origin itself are a guess" in " ".join(
        told.text.split()
    )
    assert not [w for w in told.warnings if "apart" in w]
    (city / "stops.csv").write_text((city / "stops.csv").read_text().replace("zone", "district"))
    bare = plan_of(city, ('zones = { column = "zone" }\n', ""))
    assert list(bare.features.features) == ["total", "time", "mode", "origin", "destination", "singleton"]
    assert forecast.explain(bare).gaps == ()
    monkeypatch.setattr(
        "cbdp.forecast.inputs.MAX_TYPES_WITH_STOP_TABLES", 100
    )  # with these tables a large universe could not be listed by cells
    large = plan_of(city, ('zones = { column = "zone" }\n', ""))
    assert list(large.features.features) == ["total", "time", "mode", "singleton"]
    assert any(w.startswith("no table tells origin apart") for w in forecast.explain(large).warnings)


def test_tables_of_one_s_own_take_the_place_of_the_preset_s(city: Path) -> None:
    """By the same name, or by the same attributes: none is measured twice."""
    days = ("zones = {", 'days = ["weekday", "saturday", "sunday"]\nzones = {')
    own = (
        "[privacy]",
        '[[feature]]\nname = "days"\nby = ["day"]\n[[feature]]\nname = "day-time"\nby = ["day", "mode"]\n[privacy]',
    )
    made = plan_of(city, days, own).features
    assert list(made.features) == ["total", "time", "zone", "mode", "days", "day-time", "singleton"]
    assert made.features["day-time"].by == ("day", "mode")


def test_gaps_are_of_mechanisms_that_ask_tables(city: Path) -> None:
    """What measures trip types alone has no use for a table; a tree covers what its levels tell apart."""
    assert forecast.explain(plan_of(city, ('"constraint-based"', '"laplace"'))).gaps == ()
    tree = forecast.explain(plan_of(city, ('"constraint-based"', '"hierarchical"')))
    assert {gap.name for gap in tree.gaps} == {"origin", "destination"}


def test_a_cap_that_was_not_stated_is_warned_of(city: Path) -> None:
    """The ledger would take ε as its cap, also where ε is no round number."""
    plan = plan_of(city, ("cap = 2.0\n", ""), ("epsilon = 1.0", 'epsilon = "1/3"'))
    assert plan.account.after.nano == 0
    assert any("cap of 0.333333334" in w for w in forecast.explain(plan).warnings)


def test_mechanisms_are_explained_as_they_are(city: Path) -> None:
    """A mechanism that promises nothing says so; one that measures once has noise on trip types only."""
    skipped = forecast.explain(plan_of(city, ('"constraint-based"', '"threshold-laplace"')))
    assert any("not differentially private" in w for w in skipped.warnings)
    once = forecast.explain(plan_of(city, ('"constraint-based"', '"laplace"')))
    assert [n.feature for n in once.noise] == ["singleton"]
    assert once.unmeasured == ("total", "time", "zone", "mode")
    tree = forecast.explain(plan_of(city, ('"constraint-based"', '"hierarchical"')))
    assert sum(n.epsilon for n in tree.noise) == 1
    assert {n.feature for n in tree.noise} == {"time", "zone", "mode", "singleton"}
