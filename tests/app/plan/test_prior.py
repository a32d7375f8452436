"""Public weights of trip types, by stop or by dimensions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pacsv
from pyarrow import parquet
from small_city import plan_of

from cbdp.errors import InputError


def test_a_prior_by_stop_is_a_product_of_both_ends(city: Path) -> None:
    """A weight for each stop counts at the origin and at the destination; the file's hash goes with it."""
    text = "stop,weight\n" + "".join(f"S{n},{n + 1}\n" for n in range(6))
    (city / "w.csv").write_text(text)
    plan = plan_of(city, ('"constraint-based"', '"constraint-based"\nprior = "w.csv"'))
    made: Any = plan.mechanism
    by = np.arange(1.0, 7.0)
    wanted = np.broadcast_to((by[:, None] * by)[:, :, None], (6, 6, 4))
    assert made.prior.tolist() == wanted.reshape(-1).tolist()
    assert made.prior_source == {"file": "w.csv", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    assert made.estimator == "posterior"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_prior_by_dimensions(city: Path, kind: str) -> None:
    """Weights by some of the dimensions hold for all types of those values; what is not listed weighs nothing."""
    table = pa.table({"time": ["06:00", "08:00"], "destination": ["S1", "S1"], "weight": [2.0, 0.5]})
    (pacsv.write_csv if kind == "csv" else parquet.write_table)(table, city / f"w.{kind}")
    plan = plan_of(city, ('"constraint-based"', f'"constraint-based"\nprior = "w.{kind}"'))
    made: Any = plan.mechanism
    prior = made.prior.reshape(6, 6, 4)
    assert (prior[:, 1, 0] == 2).all()
    assert (prior[:, 1, 2] == 0.5).all()
    assert prior.sum() == 6 * 2.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stop,weight\nS0,1\n", "has no weight for the stop 'S1'"),
        ("stop,weight\nS9,1\n", "row 2 of 'w.csv' has the unknown stop 'S9'"),
        ("time,weight\n06:00,1\n06:00,2\n", "row 3 of 'w.csv' gives a second weight to 06:00"),
        ("time,weight\n06:00,-1\n", "row 2 of 'w.csv' has the weight '-1'"),
        ("time,weight\n06:00,nan\n", "has the weight 'nan'"),
        ("time,weight\n06:00,lots\n", "has the weight 'lots'"),
        ("time,weight\n06:00,0\n", "all weights of 'w.csv' are 0"),
        ("tiem,weight\n06:00,0\n", "the column 'tiem' of 'w.csv' is not a dimension: did you mean 'time'?"),
        ("time,wait\n06:00,0\n", "holds no weights: give a column 'weight'"),
        ("weight\n1\n", "holds no weights"),
        ("", "is not a CSV file"),
        (None, "there is no file"),
    ],
)
def test_a_wrong_prior_is_one_line(city: Path, text: str | None, said: str) -> None:
    """The file is public: its row and value are told, at the line of the setting."""
    if text is not None:
        (city / "w.csv").write_text(text)
    with pytest.raises(InputError, match=r"cbdp\.toml:22: ") as caught:
        plan_of(city, ('"constraint-based"', '"constraint-based"\nprior = "w.csv"'))
    assert said in str(caught.value)
