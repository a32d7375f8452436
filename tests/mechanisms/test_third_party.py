"""Another package adds an estimator, a budget, a noise law or a mechanism by one short file, and uses it by name."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from noise_fits import ALPHA, fit
from small_city import plan_of, write_city

import cbdp
from cbdp.app import cli
from cbdp.estimation import ESTIMATORS
from cbdp.features import SINGLETON
from cbdp.measuring.samplers import SAMPLERS, sampler_of
from cbdp.mechanisms import MECHANISMS, ConstraintBased, of
from cbdp.parts import Parts
from cbdp.privacy.budget import BUDGETS, allocate
from cbdp.privacy.entropy import InsecureSeededEntropy
from cbdp.privacy.noise import NOISE_DISTRIBUTIONS, noise_distribution

MOST_LINES = 40
STOPS = cbdp.Dimension(range(9), zone=[i % 3 for i in range(9)])
DAG = cbdp.FeatureDag(
    cbdp.Universe(origin=STOPS, destination=STOPS, time=["am", "pm"]),
    [cbdp.Feature("time", by="time"), cbdp.Feature("zone", by=["origin.zone", "time"])],
)
TRUTH = np.random.default_rng(2).negative_binomial(0.4, 0.05, DAG.universe.size).astype(np.int64)


@dataclass(frozen=True)
class Added:
    """A part that another package brings: the one file it takes, and where it is declared."""

    table: Parts[Any]
    name: str
    text: str
    also: tuple[tuple[Parts[Any], str], ...] = ()  # further entry points of the same file

    @property
    def module(self) -> str:
        return f"added_{self.name}"

    @property
    def lines(self) -> int:
        return len(dedent(self.text).strip().splitlines())

    def install(self, site: Path) -> None:
        (site / f"{self.module}.py").write_text(dedent(self.text).lstrip())
        info = site / f"{self.module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {self.module}\nVersion: 1.0\n")
        points = [(self.table, "Part"), *self.also]
        declared = [f"[{table.group}]\n{self.name} = {self.module}:{what}\n" for table, what in points]
        (info / "entry_points.txt").write_text("\n".join(declared))


ESTIMATOR = Added(ESTIMATORS, "hushed", """
    from dataclasses import dataclass, replace
    from typing import ClassVar

    import numpy as np

    from cbdp.estimation import Estimator
    from cbdp.estimation.projection import Projection

    @dataclass(frozen=True)
    class Part(Estimator):
        name: ClassVar[str] = "hushed"
        about: ClassVar[str] = "noisy counts of trip types within two scales of 0 are 0; then as by projection"

        def estimate(self, features, measurements, program):
            return Projection().estimate(features, [self.hush(m) for m in measurements], program)

        def hush(self, m):
            if m.feature != "singleton":
                return m
            return replace(m, values=np.where(np.abs(m.values) < 2 * float(m.scale), 0, m.values))
""")  # fmt: skip
BUDGET = Added(BUDGETS, "doubling", """
    from dataclasses import dataclass
    from typing import ClassVar

    from cbdp.privacy.budget import Budget

    @dataclass(frozen=True)
    class Part(Budget):
        name: ClassVar[str] = "doubling"
        about: ClassVar[str] = "each level gets twice as much as the one above it"

        def split(self, asked):
            whole = 2 ** len(asked.levels) - 1
            return {name: asked.epsilon * 2**n / whole for n, name in enumerate(asked.levels)}
""")  # fmt: skip
LAW = Added(NOISE_DISTRIBUTIONS, "twice", """
    from dataclasses import dataclass
    from typing import ClassVar

    import numpy as np

    from cbdp.measuring.samplers import Sampler, sampler_of
    from cbdp.privacy.noise import LaplaceFamily, noise_distribution

    @dataclass(frozen=True)
    class Part(LaplaceFamily):
        name: ClassVar[str] = "twice"
        about: ClassVar[str] = "the sum of two geometric noises: lighter tails"
        excess_kurtosis: ClassVar[float] = 1.5
        one = property(lambda self: noise_distribution("geometric", self.scale))
        variance = lambda self: 2 * self.one.variance()
        transform = lambda self, t: self.one.transform(t) ** 2
        log_moment = lambda self, s: 2 * self.one.log_moment(s)
        log_cdf = lambda self, t: np.log(self.survival(-np.floor(t) - 1))
        mean_size = lambda self: 2 * float(self.survival(np.arange(100 * np.ceil(self.size))).sum())

        def log_pmf(self, z):
            r, far = self.one.decay, np.abs(np.asarray(z, dtype=float))
            return 2 * np.log((1 - r) / (1 + r)) - far / self.size + np.log(far + (1 + r * r) / (1 - r * r))

        def survival(self, t):
            r, at = self.one.decay, np.floor(np.asarray(t, dtype=float))
            first = np.where(at < 0, -at, at + 1)
            each = first + r / (1 - r) + (1 + r * r) / (1 - r * r)
            tail = (1 - r) / (1 + r) ** 2 * np.exp(-first / self.size) * each
            return np.where(at < 0, 1 - tail, tail)

    @dataclass(frozen=True)
    class Drawn(Sampler):
        law = property(lambda self: Part(self.scale))
        sample = lambda self, n, source=None: np.sum([sampler_of(self.law.one).sample(n, source) for _ in "ab"], axis=0)
        sample_skips = lambda self, N, tau, source=None: np.flatnonzero(self.sample(N, source) > tau)
        sample_excess = lambda self, n, tau, source=None: np.array([self.drawn(tau, source) for _ in range(n)], dtype=int)
        drawn = lambda self, tau, source: next(z for z in iter(lambda: self.sample(1, source)[0], None) if z > tau)
""", ((SAMPLERS, "Drawn"),))  # fmt: skip
MECHANISM = Added(MECHANISMS, "even", """
    from dataclasses import dataclass
    from typing import ClassVar

    import numpy as np

    from cbdp.measuring import measure
    from cbdp.mechanisms import Mechanism
    from cbdp.parts import setting
    from cbdp.privacy.accounting import DPCost, PrivacyGuarantee
    from cbdp.privacy.noise import DiscreteLaplace
    from cbdp.privacy.measurement import PlannedAnswer
    from cbdp.rounding import ROUNDINGS

    @dataclass(frozen=True)
    class Part(Mechanism):
        name: ClassVar[str] = "even"
        about: ClassVar[str] = "one table, spread evenly over its trip types"
        table: str = setting("the table that is measured", default="zone")

        def claim(self):
            return PrivacyGuarantee(self.unit, DPCost(self.table, self.epsilon))

        def answers(self):
            law = DiscreteLaplace.calibrate(self.epsilon, self.change("singleton"))
            return (PlannedAnswer(self.table, self.epsilon, law),)

        def measure(self, counts, entropy):
            return measure(counts, self.features, self.epsilon, "uniform", only=[self.table], entropy=entropy)

        def finish(self, answers):
            inside = self.features.partition(self.table).of_every_type()
            each = np.maximum(answers[0].values, 0) / np.bincount(inside)
            types = np.flatnonzero(each[inside])
            whole = ROUNDINGS.get("nearest").whole(self.features, types, each[inside][types], None)
            return self.publication(whole.index, whole.value, answers, violations=whole.violation)
""")  # fmt: skip
ADDED = (ESTIMATOR, BUDGET, LAW, MECHANISM)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed package for each part."""
    folder = tmp_path / "site"
    folder.mkdir()
    for part in ADDED:
        part.install(folder)
        monkeypatch.delitem(sys.modules, part.module, raising=False)
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.parametrize("part", ADDED, ids=lambda part: part.table.kind)
def test_a_part_is_one_short_file(part: Added, site: Path) -> None:
    """It is listed after ours before it is loaded, loads by its name, and says what it is."""
    print(f"{part.table.kind}: {part.lines} lines")
    assert part.lines <= MOST_LINES
    assert part.table.names() == (*part.table.table, part.name)
    assert part.module not in sys.modules
    found = part.table.get(part.name)
    assert (found.name, bool(found.about)) == (part.name, True)
    with pytest.raises(part.table.error, match=rf"'{part.name}s': did you mean '{part.name}'"):
        part.table.get(f"{part.name}s")


def again(release: cbdp.Release, folder: Path) -> None:
    """Saved, loaded, and made again by the mechanism that its recipe names."""
    release.save(folder, simulation=True)
    loaded = cbdp.load(folder)
    made = of(loaded).finish(loaded.measurements)
    assert made.index.tolist() == release.index.tolist()
    assert made.value.tolist() == release.value.tolist()
    assert made.recipe.json() == release.recipe.json()


def test_an_estimator_by_name(site: Path, tmp_path: Path) -> None:
    """In `post_process`, in a mechanism, in a configuration, and in a folder; where it cannot, it says so."""
    release = ConstraintBased(DAG, 1, estimator="hushed").simulate(TRUTH, 1)
    assert release.recipe.estimator == "hushed"
    estimate = cbdp.post_process(DAG, release.measurements, estimator="hushed")
    np.testing.assert_array_equal(estimate.counts(SINGLETON), release.estimate.counts(SINGLETON))
    plain = cbdp.post_process(DAG, release.measurements, estimator="projection")
    assert not np.array_equal(estimate.counts(SINGLETON), plain.counts(SINGLETON))
    assert estimate.solution.kkt_residual <= 1e-9
    again(release, tmp_path / "made")
    name = 'name = "constraint-based"'
    plan = plan_of(write_city(tmp_path), (name, f'{name}\nestimator = "hushed"'))
    assert plan.mechanism.estimator == "hushed"
    with pytest.raises(cbdp.InputError, match="estimator 'hushed' cannot handle"):
        ConstraintBased(DAG, 1, estimator="hushed", sparse=True).simulate(TRUTH, 1)


def test_a_budget_by_name(site: Path, tmp_path: Path) -> None:
    """In `measure`, in a mechanism, in a configuration, and in a folder; ε is spent as it says, to the last digit."""
    wanted = {"total": 1, "time": 2, "zone": 4, SINGLETON: 8}
    given = {name: Fraction(part, 15) for name, part in wanted.items()}
    assert allocate(DAG, 1, "doubling") == given
    release = ConstraintBased(DAG, 1, budget="doubling").simulate(TRUTH, 1)
    assert {m.feature: m.epsilon for m in release.measurements} == given
    measured = cbdp.measure(cbdp.count(TRUTH, DAG.universe), DAG, 1, "doubling")
    assert {m.feature: m.epsilon for m in measured} == given
    again(release, tmp_path / "made")
    plan = plan_of(write_city(tmp_path), ("epsilon = 1.0", 'epsilon = 1.0\nbudget = "doubling"'))
    assert [a.share for a in plan.mechanism.answers()] == [Fraction(2**n, 31) for n in range(5)]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_law_by_name(site: Path, sparse: bool) -> None:
    """Noise is drawn of it and its answers are estimated from; floors, likelihoods, weights and budgets ask it."""
    law = noise_distribution("twice", Fraction(3))
    drawn = sampler_of(law).sample(200_000, InsecureSeededEntropy(4))
    assert fit(drawn, law) > ALPHA
    assert drawn.var() == pytest.approx(law.variance(), rel=0.02)
    counts = cbdp.count(TRUTH, DAG.universe)
    answers = cbdp.measure(
        counts, DAG, 3, "uniform", law="twice", sparse=sparse, entropy=InsecureSeededEntropy(5)
    )
    for estimator in ("posterior", "projection") if not sparse else ("posterior",):
        made = cbdp.post_process(DAG, answers, estimator=estimator)
        told = [m if isinstance(m, cbdp.Measurement) else m.measurement() for m in answers]
        assert {m.law for m in told} == {"twice"}
        assert {type(m.noise).__module__ for m in told} == {LAW.module}
        assert made.solution.kkt_residual <= 1e-9
        assert made.counts("total")[0] == pytest.approx(TRUTH.sum(), rel=0.05)
        np.testing.assert_array_equal(
            cbdp.post_process(DAG, told, estimator=estimator).counts(SINGLETON), made.counts(SINGLETON)
        )


def test_a_mechanism_by_name(site: Path, tmp_path: Path) -> None:
    """Released, saved, loaded and made again, with intervals of what it measured; and in a configuration."""
    mechanism = MECHANISMS.get("even")(DAG, 1, table="time")
    release = mechanism.simulate(TRUTH, 1).with_intervals(0.9)
    assert release.mechanism == "even"
    assert str(release.claim) == "ε-DP for one trip, added or removed: time: 1"
    low, high = release.interval("time").low, release.interval("time").high
    truth = cbdp.count(TRUTH, DAG.universe).of(DAG, "time")
    assert (low < high).all()
    assert ((low - 5 <= truth) & (truth <= high + 5)).all()
    again(release, tmp_path / "made")
    loaded = cbdp.load(tmp_path / "made")
    assert loaded.interval("time", 0.8).low.shape == (DAG.size("time"),)
    with pytest.raises(cbdp.CbdpError, match="no measured table adds up to them"):
        loaded.interval("zone", 0.8)
    plan = plan_of(write_city(tmp_path), ('name = "constraint-based"', 'name = "even"\ntable = "time"'))
    assert (plan.mechanism.name, plan.mechanism.table) == ("even", "time")


def test_a_law_all_the_way(site: Path, tmp_path: Path) -> None:
    """From the configuration to intervals: plan page, release, folder, audit with the trips. Files name the law by its name alone."""
    law, few = (
        ("epsilon = 1.0", 'epsilon = 1.0\nlaw = "twice"'),
        ("expected_trips = 60000", "expected_trips = 50"),
    )
    plan = plan_of(write_city(tmp_path), law, few)
    assert plan.mechanism.law == "twice"
    config, page = tmp_path / "cbdp.toml", tmp_path / "plan.html"
    assert cli.main(["plan", str(config), "--page", str(page)]) == 0
    assert "<h1" in page.read_text()
    assert cli.main(["release", str(config), "--create-ledger"]) == 0
    folder = tmp_path / "release"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {m["law"] for m in manifest["measurements"]} == {"twice"}
    loaded = cbdp.load(folder)
    assert {type(m.noise).__module__ for m in loaded.measurements} == {LAW.module}
    interval = loaded.interval("zone", 0.9)
    assert (interval.low <= loaded.counts("zone")).all()
    assert (loaded.counts("zone") <= interval.high).all()
    audit = cbdp.audit_release(folder, config=config, trips=True)
    assert audit.of("contradicts") == []
    checks = {f.check for f in audit.of("clear")}
    assert {"noise scales", "composition", "estimate", "residuals", "consistency"} <= checks
