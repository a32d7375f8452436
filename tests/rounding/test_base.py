"""What every rounding promises, ours and others': a table of parts, whole trips that add up, and the same trips again."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError
from cbdp.rounding import ROUNDINGS, Nearest, Rounded, Rounding, Sparse, concentrate, cost_per_wrong_type, get
from cbdp.rounding.controlled import round_trips


@dataclass(frozen=True)
class Sparing(Rounding):
    """A third party's: counts below `least` go to the largest count of their cell."""

    name: ClassVar[str] = "sparing"
    least: float = 0.5

    def prepared(self, features: Any, index: Any, value: Any, budget: Any) -> tuple[Any, Any]:
        cells = features.cell_of_leaf[index]
        made = np.where(value < self.least, 0, value)
        for cell in np.unique(cells):
            here = np.flatnonzero(cells == cell)
            made[here[np.argmax(value[here])]] += value[here].sum() - made[here].sum()
        return index[made > 0], made[made > 0]


@dataclass(frozen=True)
class Floors(Rounding):
    """A third party's own arithmetic: nothing goes up, and the total is not kept."""

    name: ClassVar[str] = "floors"

    def prepared(self, features: Any, index: Any, value: Any, budget: Any) -> tuple[Any, Any]:
        return index, value

    def whole(self, features: Any, index: Any, value: Any, budget: Any = None) -> Rounded:
        whole = np.floor(value).astype(np.int64)
        return Rounded(index[whole > 0], whole[whole > 0], {"total": 1}, {"total": 1})

    def again(self, features: Any, index: Any, value: Any, trips: Any, budget: Any = None) -> Any:
        made = self.whole(features, index, value, budget)
        return made.index, made.value


HERE = Sparing()
KEEPS_TABLES = ["few", "nearest", Sparing(0.25), Sparing, f"{__name__}:Sparing", f"{__name__}:HERE"]


def _estimate() -> tuple[cbdp.FeatureDag, np.ndarray, np.ndarray]:
    """Two zones by three times, eight stops each, three quarters of the types expected to have some trips."""
    stops = cbdp.Dimension(range(16), zone=[i // 8 for i in range(16)])
    dag = cbdp.FeatureDag(
        cbdp.Universe(stop=stops, time=range(3)),
        [cbdp.Feature("zone", by=["stop.zone", "time"]), cbdp.Feature("time", by="time")],
    )
    rng = np.random.default_rng(3)
    index = np.flatnonzero(rng.random(dag.universe.size) < 0.75)
    return dag, index, rng.gamma(0.4, 2.0, len(index))


@pytest.mark.parametrize("wanted", KEEPS_TABLES, ids=str)
@pytest.mark.parametrize("budget", [None, "leaves", {"singleton": 1}], ids=str)
def test_a_rounding_keeps_every_table(wanted: Any, budget: Any) -> None:
    """Whole trips, ascending, every count of a table rounded down or up; and the same trips made again from their cells."""
    rounding, (dag, index, value) = get(wanted), _estimate()
    made = rounding.whole(dag, index, value, budget)
    assert made.index.dtype == made.value.dtype == np.int64
    assert (np.diff(made.index) > 0).all()
    assert (made.value > 0).all()
    assert made.violation == {}
    for name in ("total", "time", "zone"):
        element = dag.partition(name).element_of(dag.universe.unrank_codes(np.arange(dag.universe.size)))
        real, whole = np.bincount(element[index], value), np.bincount(element[made.index], made.value)
        assert (np.abs(whole - real) < 1).all()
    again = rounding.again(dag, index, value, (made.index, made.value), budget)
    assert again is not None
    assert [each.tolist() for each in again] == [made.index.tolist(), made.value.tolist()]
    other = made.value.copy()
    other[0] += 2
    assert rounding.again(dag, index, value, (made.index, other), budget) is None


def test_a_rounding_with_arithmetic_of_its_own() -> None:
    """`whole` and `again` may be replaced; what is off is reported as the rounding says."""
    rounding, (dag, index, value) = get(f"{__name__}:Floors"), _estimate()
    made = rounding.whole(dag, index, value)
    assert made.value.sum() == np.floor(value).sum() < np.floor(value.sum())
    assert made.violation == {"total": 1}
    again = rounding.again(dag, index, value, (index[:0], index[:0]))
    assert again is not None
    assert again[1].tolist() == made.value.tolist()


def test_ours_are_listed_in_order() -> None:
    """The table's names are the parts' own, and each says what it does and what it asks of an estimate."""
    assert ROUNDINGS.names()[:2] == ("few", "nearest")
    assert [get(name).name for name in ("few", "nearest")] == ["few", "nearest"]
    assert [get(name).needs_expected for name in ("few", "nearest")] == [True, False]
    assert all(get(name).about for name in ("few", "nearest"))
    assert get(HERE) is HERE
    with pytest.raises(FrozenInstanceError):
        HERE.least = 1.0  # type: ignore[misc]


def test_ours_prepare_as_they_say() -> None:
    """Nearest rounds the estimate as it is; few gathers it first, at the price of the budget."""
    dag, index, value = _estimate()
    for budget in (None, "leaves", "balanced"):
        plain = Nearest().prepared(dag, index, value, budget)
        assert [each.tolist() for each in plain] == [index.tolist(), value.tolist()]
        at, count = Sparse().prepared(dag, index, value, budget)
        expected = concentrate(dag, index, value, cost_per_wrong_type(budget))
        assert [at.tolist(), count.tolist()] == [each.tolist() for each in expected]
        whole = Sparse().whole(dag, index, value, budget)
        assert whole.value.tolist() == round_trips(dag, at, count).value.tolist()
    named = [len(Sparse().whole(dag, index, value, budget).index) for budget in ("leaves", None)]
    assert named[0] > named[1]


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("neares", r"unknown rounding 'neares': did you mean 'nearest'\?"),
        ("most", "unknown rounding 'most': there are few, nearest"),
        ("cbdp.rounding:Nothing", "rounding 'cbdp.rounding:Nothing' cannot be loaded"),
        ("cbdp.rounding:Rounded", "is not a rounding: subclass cbdp.rounding.Rounding"),
        (7, "7 is not a rounding: subclass cbdp.rounding.Rounding"),
    ],
)
def test_what_is_not_a_rounding_is_refused(wanted: Any, says: str) -> None:
    """The value that is wrong, and what to give."""
    with pytest.raises(InputError, match=says):
        get(wanted)


PLUGIN = """
    from dataclasses import dataclass
    from typing import ClassVar

    from cbdp.rounding import Rounding


    @dataclass(frozen=True)
    class Plain(Rounding):
        name: ClassVar[str] = "plain"

        def prepared(self, features, index, value, budget):
            return index, value
"""


def test_a_package_adds_one_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rounding of an installed package is listed after ours, without importing it, and found by its name."""
    (tmp_path / "plain_rounding.py").write_text(textwrap.dedent(PLUGIN))
    info = tmp_path / "plain_rounding-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plain-rounding\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ROUNDINGS.group}]\nplain = plain_rounding:Plain\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert ROUNDINGS.names() == ("few", "nearest", "plain")
    assert "plain_rounding" not in sys.modules
    dag, index, value = _estimate()
    assert get("plain").name == "plain"
    assert (
        get("plain").whole(dag, index, value).value.tolist() == round_trips(dag, index, value).value.tolist()
    )
    monkeypatch.delitem(sys.modules, "plain_rounding")
