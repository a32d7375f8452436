"""What `post_process` accepts, and that everything else is refused with one clear error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cbdp
from cbdp import Measurement
from cbdp.errors import CbdpError, InfeasibleError, InputError, SolverError
from cbdp.estimation import compiler
from cbdp.features import Dimension, Feature, FeatureDag, Universe

INF = float("inf")

STOPS = Dimension(["A", "B", "C"], zone=["n", "n", "s"])
DAG = FeatureDag(
    Universe(origin=STOPS, destination=STOPS, time=[8, 9]).without_equal("origin", "destination"),
    [
        Feature("time", by="time"),
        Feature("zone", by=["origin.zone", "destination.zone", "time"]),
        Feature("from", by=["origin"]),
    ],
)
RNG = np.random.default_rng(5)
NOISY = {name: RNG.laplace(10, 20, DAG.size(name)).round() for name in DAG}


def solved(measurements, **options):
    return cbdp.post_process(DAG, measurements, **options).counts("singleton")


EXPECTED = solved(NOISY)


def table(name, rows=None, column="noisy"):
    """A feature's noisy counts with their keys, the rows shuffled or only some."""
    keys = DAG.partition(name).keys()
    order = np.random.default_rng(1).permutation(DAG.size(name)) if rows is None else rows
    return {**{a: [c[i] for i in order] for a, c in keys.items()}, column: [NOISY[name][i] for i in order]}


KINDS = {
    "arrays": lambda name: NOISY[name],
    "integers": lambda name: NOISY[name].astype(np.int32),
    "32-bit floats": lambda name: NOISY[name].astype(np.float32),
    "lists": lambda name: NOISY[name].tolist(),
    "tuples": lambda name: tuple(NOISY[name].tolist()),
    "lists of fractions": lambda name: [Fraction(v) for v in NOISY[name].tolist()],
    "pandas series": lambda name: pd.Series(NOISY[name]),
    "polars series": lambda name: pl.Series(NOISY[name]),
    "arrow arrays": lambda name: pa.array(NOISY[name]),
    "arrow chunked arrays": lambda name: pa.chunked_array([NOISY[name][:1], NOISY[name][1:]]),
    "dicts of columns": table,
    "pandas": lambda name: pd.DataFrame(table(name)),
    "pandas with an odd index": lambda name: pd.DataFrame(table(name)).iloc[::-1],
    "pandas with categories": lambda name: pd.DataFrame(table(name)).astype(
        dict.fromkeys(DAG.features[name].by, "category")
    ),
    "polars": lambda name: pl.DataFrame(table(name), strict=False),
    "arrow": lambda name: pa.table(table(name)),
    "arrow in batches": lambda name: pa.concat_tables([pa.table(table(name))[:1], pa.table(table(name))[1:]]),
    "columns called value": lambda name: table(name, column="value"),
    "columns called count": lambda name: table(name, column="count"),
    "measurements": lambda name: Measurement(name, NOISY[name]),
    "a list of one measurement": lambda name: [Measurement(name, NOISY[name])],
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_form_gives_the_same_answer(kind):
    """Counts in the elements' order, or tables keyed by attribute values in any order, are the same input."""
    np.testing.assert_array_equal(solved({name: KINDS[kind](name) for name in NOISY}), EXPECTED)


def test_a_list_of_measurements():
    """Measurements may stand in a list or come from a generator, in any order."""
    listed = [Measurement(name, NOISY[name]) for name in reversed(NOISY)]
    np.testing.assert_array_equal(solved(listed), EXPECTED)
    np.testing.assert_array_equal(solved(m for m in listed), EXPECTED)


def test_input_is_left_alone():
    """Solving changes no array of the user, and an answer is not tied to them."""
    noisy = {name: values.copy() for name, values in NOISY.items()}
    for values in noisy.values():
        values.flags.writeable = False
    np.testing.assert_array_equal(solved(noisy), EXPECTED)


def test_partial_tables():
    """A table of some elements is a measurement of those alone: the others do not count."""
    rows = [5, 0, 2]
    noisy = {**NOISY, "zone": table("zone", rows)}
    problem = compiler.compile(DAG, noisy, "uniform")
    term = next(t for t in problem.terms if t.name == "zone")
    assert np.flatnonzero(term.weight).tolist() == sorted(rows)
    np.testing.assert_array_equal(term.target[rows], NOISY["zone"][rows])
    by_hand = {**NOISY, "zone": Measurement("zone", NOISY["zone"][rows], elements=rows)}
    np.testing.assert_array_equal(solved(noisy), solved(by_hand))
    # what is given for an element that is not measured has no influence, so a weight near zero is the same
    near = np.full(DAG.size("zone"), 1e-13)
    near[rows] = 1.0
    loose = solved(NOISY, weights={n: near if n == "zone" else 1.0 for n in DAG})
    np.testing.assert_allclose(solved(noisy, weights="uniform"), loose, atol=1e-8)


def test_empty_partial_tables():
    """A table without rows measures nothing, under every weighting."""
    nothing = {**{a: [] for a in DAG.features["zone"].by}, "noisy": [], "variance": []}
    rest = {n: Measurement(n, v, scale=1) for n, v in NOISY.items() if n != "zone"}
    for weights in ("size", "uniform", "inverse-variance"):
        np.testing.assert_allclose(
            solved({**rest, "zone": nothing}, weights=weights), solved(rest, weights=weights)
        )


def test_unmeasured_features_are_answered():
    """Features without a measurement have counts in the answer all the same."""
    estimate = cbdp.post_process(DAG, {"singleton": NOISY["singleton"]})
    assert estimate.counts("total")[0] == pytest.approx(np.maximum(0, NOISY["singleton"]).sum())
    assert len(estimate.counts("zone")) == DAG.size("zone")


def test_tables_carry_noise():
    """A column of variances, or of scales, is that of the measurement."""
    variance = np.linspace(1, 4, DAG.size("zone"))
    keyed = {**table("zone", range(6)), "variance": variance}
    (m,) = compiler.read_measurements(DAG, {"zone": keyed})
    np.testing.assert_array_equal(m.variance, variance)
    (m,) = compiler.read_measurements(DAG, {"zone": {**table("zone", range(6)), "scale": np.sqrt(variance)}})
    q = np.exp(-1 / np.sqrt(variance))
    np.testing.assert_allclose(m.variance, 2 * q / (1 - q) ** 2)


@given(st.floats(0.02, 1e6))
@settings(deadline=None, derandomize=True)
def test_variance_of_geometric_noise(scale):
    """A scale stands for the variance 2q/(1−q)² of two-sided geometric noise, q = exp(−1/scale)."""
    q = math.exp(-1 / scale)
    expected = 2 * q / math.expm1(-1 / scale) ** 2
    found = Measurement("zone", [1, 2], scale=scale).variance
    assert found.tolist() == pytest.approx([expected] * 2, rel=1e-9)


def test_variance_of_geometric_noise_by_summation():
    """The variance is Σ z² P(z) of the law itself."""
    z = np.arange(-400, 401)
    for scale in (0.3, 1, Fraction(5, 2), 9.5):
        p = np.exp(-np.abs(z) / float(scale))
        assert Measurement("f", [0], scale=scale).variance[0] == pytest.approx(
            np.sum(z**2 * p) / p.sum(), rel=1e-9
        )


@pytest.mark.parametrize("scale", [1.0, 0.05, 0.01, 0.002, 0.0012, 1e-3, 1e-4, 1e-300])
def test_hardly_any_noise(scale):
    """However small a scale (a privacy budget in the thousands), inverse-variance weights stay usable numbers."""
    noisy = [Measurement(n, v, scale=scale) for n, v in NOISY.items()]
    np.testing.assert_allclose(
        solved(noisy, weights="inverse-variance"), solved(NOISY, weights="uniform"), atol=1e-8
    )
    twice = [*noisy, Measurement("zone", NOISY["zone"], scale=scale)]
    assert np.isfinite(solved(twice)).all()


def test_repeated_measurements_are_averaged_by_inverse_variance():
    """Two answers to one feature count as their mean weighted by 1/variance, element by element."""
    one, two = (
        Measurement("time", [10.0, 20.0], variance=[1.0, 4.0]),
        Measurement("time", [16.0, 30.0], variance=2.0),
    )
    merged = compiler.merge_measurements(DAG, [one, two])["time"]
    assert merged.values.tolist() == pytest.approx(
        [(10 / 1 + 16 / 2) / (1 / 1 + 1 / 2), (20 / 4 + 30 / 2) / (1 / 4 + 1 / 2)]
    )
    assert merged.variance.tolist() == pytest.approx([1 / (1 / 1 + 1 / 2), 1 / (1 / 4 + 1 / 2)])
    rest = {n: v for n, v in NOISY.items() if n != "time"}
    together = solved({**rest, "time": [one, two]})
    np.testing.assert_allclose(together, solved({**rest, "time": [12.0, 80 / 3]}), atol=1e-9)


def test_partial_measurements_that_overlap():
    """Where only one of two measurements names an element its value stands; where none does it is unmeasured."""
    several = [
        Measurement("zone", [6.0, 1.0], variance=2.0, elements=[3, 0]),
        Measurement("zone", [9.0, 5.0], variance=1.0, elements=[3, 4]),
    ]
    merged = compiler.merge_measurements(DAG, several)["zone"]
    assert merged.elements.tolist() == [0, 3, 4]
    assert merged.values.tolist() == pytest.approx([1.0, (6 / 2 + 9) / 1.5, 5.0])
    assert merged.variance.tolist() == pytest.approx([2.0, 1 / 1.5, 1.0])


def test_singleton_measured_in_parts():
    """Parts of the leaves measured apart make a whole measurement together."""
    n = DAG.universe.size
    order = np.random.default_rng(0).permutation(n)
    parts = [
        Measurement("singleton", NOISY["singleton"][p], scale=2, elements=p) for p in np.array_split(order, 3)
    ]
    rest = [Measurement(name, v) for name, v in NOISY.items() if name != "singleton"]
    np.testing.assert_allclose(solved([*parts, *rest]), EXPECTED, atol=1e-9)


def test_repeated_measurement_equals_one_with_both_terms():
    """By inverse variance, averaging first and weighing by precision is the program with both answers in it."""
    variances = {"total": 1.0, "time": 2.0, "zone": 5.0, "from": 3.0, "singleton": 8.0}
    listed = [Measurement(n, v, variance=variances[n]) for n, v in NOISY.items()]
    again = Measurement("zone", NOISY["zone"] + 3, variance=1.0)
    other = FeatureDag(
        DAG.universe,
        [*DAG.features.values(), Feature("zone again", by=["time", "destination.zone", "origin.zone"])],
    )
    place = other.map_elements("zone again", "zone")
    both = [*listed, Measurement("zone again", again.values[place], variance=1.0)]
    expected = cbdp.post_process(other, both, weights="inverse-variance").counts("singleton")
    np.testing.assert_allclose(solved([*listed, again], weights="inverse-variance"), expected, atol=1e-8)


def test_weights_by_inverse_variance():
    """Inverse-variance weights are the mapping of 1/variance by element."""
    rng = np.random.default_rng(2)
    variance = {n: rng.uniform(0.5, 9, DAG.size(n)) for n in DAG}
    listed = [Measurement(n, NOISY[n], variance=variance[n]) for n in DAG]
    expected = solved(NOISY, weights={n: 1 / v for n, v in variance.items()})
    np.testing.assert_allclose(solved(listed, weights="inverse-variance"), expected, atol=1e-9)


def test_weights_by_feature():
    """A mapping mixes rules, numbers and numbers per element; a feature it leaves out weighs by size."""
    sizes = DAG.sizes
    mixed = {"time": "uniform", "zone": 0.25, "from": [1, 2, 3], "singleton": "size"}
    spelled = {
        "total": 1.0,
        "time": 1.0,
        "zone": 0.25,
        "from": [1, 2, 3],
        "singleton": 1 / sizes["singleton"],
    }
    np.testing.assert_allclose(solved(NOISY, weights=mixed), solved(NOISY, weights=spelled), atol=1e-9)
    np.testing.assert_array_equal(solved(NOISY, weights={}), EXPECTED)
    np.testing.assert_allclose(
        solved(NOISY, weights={n: 1 / s for n, s in sizes.items()}), EXPECTED, atol=1e-9
    )


def without(name):
    return {n: v for n, v in NOISY.items() if n != name}


def given_as(name, value):
    return {**NOISY, name: value}


def spoiled(name, value):
    values = NOISY[name].copy()
    values[2] = value
    return given_as(name, values)


def keyed(**changes):
    made = {**table("zone", range(6)), **changes}
    return given_as("zone", {k: v for k, v in made.items() if v is not None})


N = DAG.size("zone")
BAD_INPUT = {
    "NaN count": (lambda: solved(spoiled("zone", math.nan)), "'zone'.*number 2.*nan"),
    "infinite count": (lambda: solved(spoiled("zone", INF)), "'zone'.*number 2.*inf"),
    "NaN leaf": (lambda: solved(spoiled("singleton", math.nan)), "'singleton'.*number 2.*nan"),
    "minus infinite leaf": (lambda: solved(spoiled("singleton", -INF)), "'singleton'.*number 2.*-inf"),
    "missing count": (lambda: solved(given_as("time", [1.0, None])), "'time'.*number 1"),
    "too few": (lambda: solved(given_as("time", [1.0])), "'time'.*1 val"),
    "too many": (lambda: solved(given_as("time", [1.0, 2, 3])), "'time'.*3 val"),
    "too few leaves": (lambda: solved(given_as("singleton", NOISY["singleton"][1:])), "'singleton'.*11 val"),
    "no counts": (lambda: solved(given_as("time", [])), "'time'.*0 val"),
    "a number": (lambda: solved(given_as("total", 3)), "'total'.*shape"),
    "a square": (lambda: solved(given_as("time", np.ones((2, 2)))), r"'time'.*\(2, 2\)"),
    "words": (lambda: solved(given_as("time", ["many", "few"])), "'time'.*many"),
    "complex numbers": (lambda: solved(given_as("time", np.array([1j, 2]))), "'time'"),
    "dates": (lambda: solved(given_as("time", np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"))), "'time'"),
    "unknown feature": (lambda: solved(given_as("stop", [1, 2])), "'stop'"),
    "unknown feature in a table": (lambda: solved(given_as("stop", table("zone"))), "'stop'"),
    "unknown feature in a measurement": (lambda: solved([Measurement("stop", [1, 2])]), "'stop'"),
    "wrong name": (lambda: solved(given_as("time", Measurement("zone", NOISY["zone"]))), "'zone'.*'time'"),
    "not a measurement": (lambda: solved([NOISY["time"]]), "not a measurement"),
    "nothing": (lambda: solved(None), "None"),
    "row outside the universe": (lambda: solved(keyed(**{"origin.zone": ["x", *"nnnss"]})), "'zone'.*origin.zone='x'"),
    "value of another type": (lambda: solved(keyed(time=["8"] * 6)), "'zone'.*time='8'"),
    "missing key": (lambda: solved(keyed(time=[None, 9, 8, 9, 8, 9])), "'zone'.*time=None"),
    "missing key column": (lambda: solved(keyed(time=None)), "'zone'.*'time'"),
    "no count column": (lambda: solved(keyed(noisy=None)), "'zone'.*noisy"),
    "missing count in a table": (lambda: solved(keyed(noisy=[None, *range(5)])), "'zone'.*number 0"),
    "columns of different length": (lambda: solved(keyed(noisy=[1, 2])), "'zone'"),
    "structural zero": (
        lambda: solved(given_as("singleton", {"origin": ["A"], "destination": ["A"], "time": [8], "noisy": [1]})),
        "origin='A', destination='A'",
    ),
    "element twice": (lambda: solved(given_as("time", {"time": [8, 8], "noisy": [1, 2]})), "'time'.*twice"),
    "two totals in a table": (lambda: solved(given_as("total", {"noisy": [1, 2]})), "'total'"),
    "bad variance in a table": (lambda: solved(keyed(variance=[0.0] * 6)), "'zone'.*variance"),
    "bad scale in a table": (lambda: solved(keyed(scale=[-1.0] * 6)), "'zone'.*(variance|scale)"),
    "element outside": (lambda: solved(given_as("time", Measurement("time", [1], elements=[2]))), "'time'.*1"),
    "negative element": (lambda: solved(given_as("time", Measurement("time", [1], elements=[-1]))), "'time'"),
    "fractional element": (lambda: Measurement("time", [1, 2], elements=[0.2, 1.7]), "'time'"),
    "element by name": (lambda: Measurement("time", [1, 2], elements=["a", "b"]), "'time'"),
    "elements twice": (lambda: Measurement("time", [1, 2], elements=[1, 1]), "'time'.*twice"),
    "elements of other length": (lambda: Measurement("time", [1, 2], elements=[1]), "'time'.*2 values.*elements"),
    "scale of zero": (lambda: Measurement("time", [1, 2], scale=0), "'time'.*0"),
    "negative scale": (lambda: Measurement("time", [1, 2], scale=-1.5), "'time'.*-1.5"),
    "NaN scale": (lambda: Measurement("time", [1, 2], scale=math.nan), "'time'.*nan"),
    "infinite scale": (lambda: Measurement("time", [1, 2], scale=INF), "'time'.*inf"),
    "scale in words": (lambda: Measurement("time", [1, 2], scale="wide"), "'time'.*wide"),
    "variance of zero": (lambda: Measurement("time", [1, 2], variance=[1, 0]), "'time'.*variance"),
    "NaN variance": (lambda: Measurement("time", [1, 2], variance=math.nan), "'time'.*variance"),
    "variances of other length": (lambda: Measurement("time", [1, 2], variance=[1, 2, 3]), "'time'.*varianc"),
    "variance in words": (lambda: Measurement("time", [1, 2], variance="wide"), "'time'.*varianc"),
    "twice without noise": (lambda: solved(given_as("time", [Measurement("time", [1, 2])] * 2)), "'time'.*2 times"),
    "no singleton": (lambda: solved(without("singleton")), "'singleton'"),
    "no measurement": (lambda: solved({}), "'singleton'"),
    "partial singleton": (
        lambda: solved(given_as("singleton", Measurement("singleton", [1, 2], elements=[0, 5]))), "'singleton'.*2 of 12",
    ),
    "weight of zero": (lambda: solved(NOISY, weights={"zone": 0}), "'zone'"),
    "negative weight": (lambda: solved(NOISY, weights={"zone": -1}), "'zone'"),
    "NaN weight": (lambda: solved(NOISY, weights={"zone": math.nan}), "'zone'"),
    "one zero weight": (lambda: solved(NOISY, weights={"zone": [0] + [1] * (N - 1)}), "'zone'"),
    "too few weights": (lambda: solved(NOISY, weights={"zone": [1] * (N - 1)}), r"'zone'.*\(5,\)"),
    "weight in words": (lambda: solved(NOISY, weights={"zone": [1, "x"]}), "'zone'"),
    "weight of an unknown feature": (lambda: solved(NOISY, weights={"stop": 1}), "'stop'"),
    "unknown rule": (lambda: solved(NOISY, weights="sizes"), "'sizes'"),
    "unknown rule of a feature": (lambda: solved(NOISY, weights={"zone": "sizes"}), "'sizes'"),
    "inverse variance of nothing": (lambda: solved(NOISY, weights="inverse-variance"), "noise of"),
    "exact leaves": (lambda: solved(NOISY, weights={"singleton": INF}), "'singleton'"),
    "one exact leaf": (lambda: solved(NOISY, weights={"singleton": [INF] + [1] * 11}), "'singleton'"),
    "tolerance of zero": (lambda: solved(NOISY, tolerance=0), "0"),
    "negative tolerance": (lambda: solved(NOISY, tolerance=-1e-6), "-1e-06"),
    "NaN tolerance": (lambda: solved(NOISY, tolerance=math.nan), "nan"),
    "tolerance in words": (lambda: solved(NOISY, tolerance="low"), "low"),
    "warm start of another kind": (lambda: solved(NOISY, warm_start=EXPECTED), "warm_start|warm start"),
    "counts of an unknown feature": (lambda: cbdp.post_process(DAG, NOISY).counts("stop"), "'stop'"),
    "table of an unknown feature": (lambda: cbdp.post_process(DAG, NOISY).table("stop"), "'stop'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_INPUT)
def test_bad_input_is_refused(what):
    """Each wrong input is an InputError of one line that names the wrong value."""
    make, message = BAD_INPUT[what]
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


BAD_SOLVERS = ["gurobi", "no.such.module:Solver", "math:pi", "cbdp_solvers.newton:Oldton", 3, object]


@pytest.mark.parametrize("solver", BAD_SOLVERS, ids=str)
def test_unknown_solvers_are_refused(solver):
    """A solver that cannot be found, or is not one, is a SolverError that names it."""
    with pytest.raises(SolverError) as caught:
        solved(NOISY, solver=solver)
    assert (
        solver.split(":")[0] if isinstance(solver, str) and solver != "math:pi" else "is not a solver"
    ) in str(caught.value)


def exact(**counts):
    """All of NOISY with these features exact."""
    return {**NOISY, **counts}, dict.fromkeys(counts, INF)


INFEASIBLE = {
    "negative": (exact(total=[-1.0]), "'total'.*-1"),
    "negative element": (exact(time=[5.0, -2.0]), "'time' number 1.*-2"),
    "total against times": (exact(total=[10.0], time=[7.0, 4.0]), "'t(otal|ime)'"),
    "a little off": (exact(total=[10.0], time=[7.0, 3.001]), "'t(otal|ime)'"),
    "a few trips in a billion": (exact(total=[1e9], time=[5e8, 5e8 + 50]), "'t(otal|ime)'"),
    "one trip in ten million": (exact(total=[1e7], time=[5e6, 5e6 + 1]), "'t(otal|ime)'"),
    "crossing": (exact(**{"from": [5.0, 5.0, 0.0], "time": [6.0, 5.0]}), "'(from|time)'"),
    "crossing though totals agree": (
        # zone pair (s, ·) holds origin C: its trips cannot exceed those from C
        exact(**{"from": [5.0, 5.0, 0.0], "zone": [0.0, 0.0, 4.0, 0.0, 6.0, 0.0]}), "'(from|zone)'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", INFEASIBLE)
def test_contradicting_exact_counts_are_refused(what):
    """Exact counts that no non-negative trips can meet are an InfeasibleError that names one of them."""
    (noisy, weights), message = INFEASIBLE[what]
    with pytest.raises(InfeasibleError, match=message) as caught:
        solved(noisy, weights=weights)
    assert "\n" not in str(caught.value)


def test_agreeing_exact_counts_are_accepted():
    """Large exact counts of crossing features, taken from one set of trips, are met."""
    trips = np.random.default_rng(3).integers(0, 10**8, DAG.universe.size).astype(float)
    counts = {
        n: np.bincount(DAG.partition(n).of_every_type(), weights=trips)
        for n in ("total", "time", "zone", "from")
    }
    estimate = cbdp.post_process(
        DAG, {**counts, "singleton": NOISY["singleton"]}, weights=dict.fromkeys(counts, INF)
    )
    for name, expected in counts.items():
        np.testing.assert_allclose(estimate.counts(name), expected, rtol=1e-9)


def test_every_error_is_ours():
    """One class catches all of them."""
    assert issubclass(InputError, CbdpError)
    assert issubclass(InfeasibleError, CbdpError)
    assert issubclass(SolverError, CbdpError)
    assert cbdp.CbdpError is CbdpError
