"""Every solver answers alike, and no solver's word is taken for it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import textwrap
from typing import Any, ClassVar

import numpy as np
import pytest

import cbdp
from cbdp import solvers
from cbdp.errors import CertificateError, InputError, SolverError
from cbdp.solvers import LiftedSolver
from cbdp_solvers import newton
from cbdp_solvers.newton import Newton
from cbdp_solvers.problem import LiftedQP, scale

# solver, settings, the certificate it must reach
ROWS = [
    ("newton", {}, 1e-12),
    ("piqp", {}, 1e-9),
    ("osqp", {}, 1e-9),
    ("cvxpy", {}, 1e-9),
    ("cvxpy", {"solver": "OSQP"}, 1e-9),
    ("cvxpy", {"solver": "PIQP"}, 1e-9),
    ("cvxpy", {"solver": "SCS"}, 1e-9),
    ("highs", {}, 1e-9),
    ("scipy", {}, 1e-6),
]
SETTINGS = [
    ("newton", {"tolerance": 0.0}),
    ("newton", {"max_steps": 0}),
    ("piqp", {"tolerance": -1.0}),
    ("piqp", {"max_iterations": 0}),
    ("osqp", {"tolerance": float("nan")}),
    ("osqp", {"max_iterations": 0}),
    ("cvxpy", {"solver": "GUROBI"}),
    ("cvxpy", {"tolerance": 0.0}),
    ("highs", {"tolerance": 0.0}),
    ("scipy", {"tolerance": 0.0}),
    ("scipy", {"max_iterations": 0}),
]


def small_city(seed, *, exact):
    """Features that cross, one measured in part, weights that differ by element and by 10⁴; perhaps an exact total."""
    rng = np.random.default_rng(seed)
    stops = cbdp.Dimension("ABCDEF", zone="nnssee")
    universe = cbdp.Universe(origin=stops, destination=stops, time=range(3))
    features = [
        cbdp.Feature("time", by="time"),
        cbdp.Feature("zone", by=["origin.zone", "destination.zone"]),
        cbdp.Feature("origin", by=["origin", "time"]),
        cbdp.Feature("pair", by=["origin", "destination"]),
    ]
    dag = cbdp.FeatureDag(universe, features)
    trips = rng.poisson(0.7, universe.size) * rng.integers(1, 30, universe.size)
    measured: dict[str, Any] = {}
    for name in dag.features:
        sums = (
            trips if name == "singleton" else np.bincount(dag.partition(name).of_every_type(), weights=trips)
        )
        measured[name] = sums + rng.laplace(scale=8.0, size=len(sums))
    some = np.array([7, 2, 11, 0])
    measured["origin"] = cbdp.Measurement("origin", measured["origin"][some], elements=some)
    weights = {
        "pair": rng.uniform(0.01, 0.1, dag.size("pair")),
        "singleton": rng.uniform(0.005, 0.02, universe.size),
    }
    if exact:
        measured["total"] = [float(trips.sum())]
        weights["total"] = float("inf")
    return dag, measured, weights


def built(name, settings):
    solver = dataclasses.replace(solvers.get(name), **settings)
    if not solver.installed():
        pytest.skip(f"{name} needs {solver.package}: {solver.install}")
    if name == "cvxpy" and settings:
        cvxpy = pytest.importorskip("cvxpy")
        if settings["solver"] not in cvxpy.installed_solvers():
            pytest.skip(f"cvxpy has no {settings['solver']}")
    return solver


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True], ids=["noisy", "exact-total"])
@pytest.mark.parametrize(
    ("name", "settings", "tolerance"), ROWS, ids=lambda v: v if isinstance(v, str) else None
)
def test_a_solver_finds_the_certified_optimum(name, settings, tolerance, exact):
    """Any solver's answer is newton's, certified within its row's tolerance."""
    solver = built(name, settings)
    dag, measured, weights = small_city(5, exact=exact)
    if exact and not solver.exact_values:
        with pytest.raises(SolverError, match="cannot hold exact counts"):
            cbdp.post_process(dag, measured, weights=weights, solver=solver)
        return
    ours = cbdp.post_process(dag, measured, weights=weights, tolerance=1e-12)
    theirs = cbdp.post_process(dag, measured, weights=weights, solver=solver, tolerance=tolerance)
    assert (ours.solution.leaves == 0).any()
    assert (ours.solution.leaves > 0).any()
    np.testing.assert_allclose(theirs.solution.leaves, ours.solution.leaves, atol=100 * tolerance)
    assert theirs.solution.objective == pytest.approx(ours.solution.objective, rel=10 * tolerance)
    assert theirs.solution.solver == name
    if exact:
        assert theirs.counts("total")[0] == pytest.approx(measured["total"][0], rel=1e-9)


@pytest.mark.parametrize(("name", "settings"), [row[:2] for row in ROWS if row[0] not in ("newton", "scipy")])
def test_exact_counts_may_repeat_each_other(name, settings):
    """Exact counts of features that cross make rows redundant, which no solver minds."""
    solver = built(name, settings)
    dag, measured, weights = small_city(6, exact=True)
    total = measured["total"][0]
    measured["time"] = [total / 2, total / 4, total / 4]
    measured["zone"] = np.full(9, total / 9)
    weights |= {"time": float("inf"), "zone": float("inf")}
    found = cbdp.post_process(dag, measured, weights=weights, solver=solver)
    ours = cbdp.post_process(dag, measured, weights=weights)
    np.testing.assert_allclose(found.solution.leaves, ours.solution.leaves, atol=1e-4)


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_a_setting_that_cannot_be_is_refused(name, settings):
    """A solver with an impossible setting cannot be built, and the error names the setting's value."""
    with pytest.raises(InputError, match=next(iter(map(str, settings.values()))).removesuffix(".0")):
        dataclasses.replace(solvers.get(name), **settings)


def test_newton_goes_on_when_no_leaf_is_above_its_shift():
    """Many leaves that matter no longer, none above its shift, and still a step to go: no warning, and the optimum."""
    falling, idle = (
        60_000,
        140_000,
    )  # exponential excesses: each step of newton drops about 1 − 1/e of those left
    universe = cbdp.Universe(place=cbdp.Dimension(range(falling + idle), zone=["a"] * falling + ["b"] * idle))
    dag = cbdp.FeatureDag(universe, [cbdp.Feature("zone", by="place.zone")])
    noisy = np.concatenate([-np.log((np.arange(falling) + 0.5) / falling), np.full(idle, -0.25)])
    first = cbdp.Measurement("zone", np.array([-0.2]), elements=np.array([0]))
    found = cbdp.post_process(
        dag, {"singleton": noisy, "zone": first}, weights={"singleton": 1.0, "zone": 100.0}
    )
    assert found.solution.iterations > 10
    assert not found.solution.leaves.any()
    # the price of the zone is 100 (0 + 0.2): more than the largest leaf, log(120,000)
    assert found.solution.prices["zone"][0] == pytest.approx(20.0)


def test_newton_does_not_stop_where_it_only_drops_leaves(monkeypatch):
    """Leaves dropped close to the optimum are not the end of the work, however small the residual there is."""
    monkeypatch.setattr(newton, "STALL_RESIDUAL", 0.9)
    monkeypatch.setattr(
        newton.LeafSet, "worth_screening", lambda leaves, now, max_ratio: np.isfinite(max_ratio)
    )
    dag, measured, weights = small_city(5, exact=False)
    found = cbdp.post_process(dag, measured, weights=weights, tolerance=0.9)
    assert found.solution.kkt_residual < 1e-12


def test_weights_that_differ_too_much_end_in_a_certificate_or_an_error_of_ours():
    """Weights 24 powers of ten apart: newton certifies its optimum, or says that it cannot; it never divides by zero or overflows."""
    solved = 0
    for seed in range(660, 690):
        rng = np.random.default_rng(seed)
        universe = cbdp.Universe(origin=range(3), destination=range(3))
        names = ("origin", "destination", "singleton")
        dag = cbdp.FeatureDag(universe, [cbdp.Feature(name, by=name) for name in names[:2]])
        measured: dict[str, Any] = {"total": [10.0 ** rng.uniform(-3, 9)]}
        measured |= {n: rng.laplace(size=dag.size(n)) * 10.0 ** rng.uniform(-3, 9) for n in names}
        weights = {"total": np.inf} | {n: 10.0 ** rng.uniform(-12, 12, dag.size(n)) for n in names}
        try:
            estimate = cbdp.post_process(dag, measured, weights=weights, tolerance=1e-6)
        except (SolverError, CertificateError):
            continue
        solved += 1
        assert estimate.solution.kkt_residual <= 1e-6
    assert solved > 0


@pytest.mark.parametrize("wrong", ["ascent", "far uphill", "long", "infinite"])
def test_newton_descends_whatever_a_factorisation_yields(wrong, monkeypatch):
    """Rounding may turn the Newton direction uphill, or make it so long that Φ overflows: the optimum is reached all the same."""
    dag, measured, weights = small_city(5, exact=False)
    expected = cbdp.post_process(dag, measured, weights=weights, tolerance=1e-12)
    factors = {"ascent": -1e-3, "far uphill": -1e160, "long": 1e200, "infinite": np.inf}

    @dataclasses.dataclass
    class Misled:
        exact: Any
        calls: int = 0

        def solve(self, d, gradient):
            self.calls += 1
            direction = self.exact.solve(d, gradient)
            with np.errstate(invalid="ignore"):
                return direction * factors[wrong] if self.calls % 2 else direction

    right = newton.linear_solver
    monkeypatch.setattr(newton, "linear_solver", lambda *form: Misled(right(*form)))
    misled = cbdp.post_process(dag, measured, weights=weights, tolerance=1e-10)
    np.testing.assert_allclose(misled.solution.leaves, expected.solution.leaves, atol=1e-7)


def test_scaling_loses_nothing():
    """The scaled program's variables and multipliers are the lifted program's, in other units."""
    dag, measured, weights = small_city(7, exact=True)
    problem = cbdp.estimation.compiler.compile(dag, measured, weights)
    qp, s = problem.lifted(), scale(problem.lifted())
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=len(s.linear)), rng.normal(size=len(s.rhs))
    x, multipliers = s.undo(z, y)
    _same_but_for_the_unit((qp.ties @ x) * s.of_row, s.ties @ z - s.rhs)
    gradient = (qp.weight * (x - qp.target) + qp.ties.T @ multipliers)[s.free]
    _same_but_for_the_unit(gradient * s.of_variable, s.weight * z + s.linear + s.ties.T @ y)


def _same_but_for_the_unit(first, second):
    np.testing.assert_allclose(first / np.abs(first).max(), second / np.abs(second).max(), atol=1e-12)


def test_an_unknown_name_lists_the_known_ones():
    """A solver nobody knows is refused with the list of those there are."""
    with pytest.raises(
        SolverError, match=r"unknown solver 'simplex': there are newton, piqp.*package\.module:attr"
    ):
        solvers.get("simplex")


@pytest.mark.parametrize("where", ["no.such.module:Newton", "cbdp_solvers.newton:NoSuchSolver"])
def test_a_path_that_leads_nowhere_is_an_error_of_ours(where):
    """A module or attribute that is not there is reported with the path that was asked for."""
    with pytest.raises(SolverError, match=f"'{where}' cannot be loaded"):
        solvers.get(where)


@pytest.mark.parametrize("thing", [3, dict, "builtins:dict"])
def test_what_is_no_solver_is_refused(thing):
    """A number, another class, or a path to one is not a solver."""
    with pytest.raises(SolverError, match="is not a solver"):
        solvers.get(thing)


@pytest.mark.parametrize(
    "given",
    ["newton", "cbdp_solvers.newton:Newton", Newton, Newton(tolerance=1e-11)],
    ids=["name", "path", "class", "object"],
)
def test_a_solver_can_be_given_in_four_ways(given):
    """A name, a path, a class and an object all do, and an object keeps its settings."""
    solver = solvers.get(given)
    assert isinstance(solver, Newton)
    assert solver.tolerance == (1e-11 if isinstance(given, Newton) else 1e-13)
    dag, measured, weights = small_city(8, exact=False)
    assert cbdp.post_process(dag, measured, weights=weights, solver=given).solution.solver == "newton"


@pytest.mark.parametrize("name", ["piqp", "osqp", "cvxpy", "highs"])
def test_a_missing_package_says_how_to_get_it(name, monkeypatch):
    """A solver whose package is not installed is refused with the command that installs it."""
    solver = solvers.get(name)
    monkeypatch.setattr(type(solver), "package", "no_such_package_at_all")
    dag, measured, weights = small_city(9, exact=False)
    with pytest.raises(SolverError, match=f"'{name}' needs no_such_package_at_all.*pip install"):
        cbdp.post_process(dag, measured, weights=weights, solver=solver)


def test_without_hipo_highs_refuses_what_it_cannot_do(monkeypatch):
    """HiGHS's active-set method solves small problems and refuses large ones with the package that helps."""
    pytest.importorskip("highspy")
    from cbdp_solvers import highs

    monkeypatch.setattr(
        highs.importlib.util, "find_spec", lambda name: None if name == "highspy_extras" else True
    )
    dag, measured, weights = small_city(10, exact=True)
    found = cbdp.post_process(dag, measured, weights=weights, solver="highs")
    ours = cbdp.post_process(dag, measured, weights=weights)
    np.testing.assert_allclose(found.solution.leaves, ours.solution.leaves, atol=1e-4)
    monkeypatch.setattr(highs, "MAX_ACTIVE_SET_LEAVES", 10)
    with pytest.raises(SolverError, match="pip install highspy-extras"):
        cbdp.post_process(dag, measured, weights=weights, solver="highs")


@dataclasses.dataclass(frozen=True)
class Sloppy(LiftedSolver):
    """Newton's answer with one leaf moved by a little."""

    name: ClassVar[str] = "sloppy"
    off: float = 1e-3

    def answer(self, problem, warm_start):
        found = Newton().answer(problem, warm_start)
        found.leaves[np.argmax(found.leaves)] += self.off
        return found

    def solve_lifted(self, qp: LiftedQP):
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Broken(LiftedSolver):
    """Fails in one of two ways."""

    name: ClassVar[str] = "broken"
    raises: bool = True

    def solve_lifted(self, qp: LiftedQP):
        if self.raises:
            raise ZeroDivisionError("by zero")
        return np.full(len(qp.target), np.nan), np.zeros(qp.ties.shape[0]), 1


def test_a_wrong_answer_is_caught():
    """A solver that says it is done with an answer slightly off is an error that says what to try."""
    dag, measured, weights = small_city(11, exact=False)
    with pytest.raises(
        CertificateError,
        match=r"'sloppy' returned an answer whose .* tighten its settings or use solver='newton'",
    ):
        cbdp.post_process(dag, measured, weights=weights, solver=Sloppy())
    within = cbdp.post_process(dag, measured, weights=weights, solver=Sloppy(off=1e-6))
    assert 1e-10 < within.solution.kkt_residual < 1e-6


@pytest.mark.parametrize(("raises", "message"), [(True, "failed: by zero"), (False, "not numbers")])
def test_a_solver_that_breaks_is_an_error_of_ours(raises, message):
    """A backend's own exception, and values that are not numbers, become a SolverError that names the way out."""
    dag, measured, weights = small_city(12, exact=False)
    with pytest.raises(SolverError, match=f"{message}.*newton"):
        cbdp.post_process(dag, measured, weights=weights, solver=Broken(raises=raises))


PLUGIN = """
    import dataclasses
    from typing import ClassVar
    import scipy.sparse.linalg as spl
    import numpy as np
    import cbdp.solvers

    @dataclasses.dataclass(frozen=True)
    class Plain(cbdp.solvers.LiftedSolver):
        name: ClassVar[str] = "plain"

        def solve_lifted(self, qp):  # without bounds: right when no leaf comes out negative
            normal = (qp.ties / qp.weight) @ qp.ties.T
            y = spl.spsolve(normal.tocsc(), qp.ties @ qp.target)
            return qp.target - (qp.ties.T @ y) / qp.weight, y, 1
"""
USES_PLUGIN = """
    import cbdp
    assert cbdp.solvers.known()["plain"] == "plain_qp:Plain", cbdp.solvers.known()
    assert list(cbdp.solvers.known())[0] == "newton"
    dag = cbdp.FeatureDag(cbdp.Universe(origin=list("AB"), time=list("mn")), [cbdp.Feature("time", by="time")])
    noisy = {"total": [30.0], "time": [15.0, 14.0], "singleton": [5.0, 9.0, 8.0, 6.0]}
    found = cbdp.post_process(dag, noisy, solver="plain").solution
    assert found.solver == "plain" and found.kkt_residual < 1e-12, found
    noisy["singleton"] = [5.0, -9.0, 8.0, 6.0]
    try:
        cbdp.post_process(dag, noisy, solver="plain")
    except cbdp.errors.CertificateError as caught:
        assert "plain" in str(caught)
    else:
        raise AssertionError("a negative leaf was let through")
    print("certified")
"""


PROJECT = f"""
    [build-system]
    requires = ["hatchling"]
    build-backend = "hatchling.build"

    [project]
    name = "plain-qp"
    version = "1.0"

    [project.entry-points."{solvers.SOLVERS.group}"]
    plain = "plain_qp:Plain"

    [tool.hatch.build.targets.wheel]
    include = ["plain_qp.py"]
"""


@pytest.mark.slow
def test_a_third_party_package_registers_by_entry_point(tmp_path):
    """A package installed by pip that declares a solver is listed by `cbdp parts`, solves and is certified."""
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    (source / "plain_qp.py").write_text(textwrap.dedent(PLUGIN))
    (source / "pyproject.toml").write_text(textwrap.dedent(PROJECT))
    install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--target",
    ]
    subprocess.run(
        [sys.executable, *install, str(site), str(source)], check=True, capture_output=True, timeout=300
    )
    here = {**os.environ, "PYTHONPATH": str(site)}
    listed = subprocess.run(
        [sys.executable, "-m", "cbdp", "parts", "solvers"],
        capture_output=True,
        text=True,
        env=here,
        check=True,
    )
    assert [line for line in listed.stdout.splitlines() if line.split()[:2] == ["plain", "plain_qp"]]
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(USES_PLUGIN)],
        capture_output=True,
        text=True,
        timeout=120,
        env=here,
        check=False,
    )
    assert run.stdout.strip() == "certified", run.stderr
