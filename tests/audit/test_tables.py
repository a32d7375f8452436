"""Tables of counts and what relates them: what makes no sense is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cbdp.audit.tables import CountTable, Pair, PublishedTables, Sum
from cbdp.errors import InputError
from cbdp.privacy.noise import noise_distribution


def test_tables_refuse_what_makes_no_sense() -> None:
    """Keys of another length, two tables of one name, relations of unknown tables and impossible noise are refused."""
    table = CountTable("t", {"k": np.arange(2)}, np.ones(2))
    with pytest.raises(InputError, match="3 values for 2 counts"):
        CountTable("t", {"k": np.arange(3)}, np.ones(2))
    with pytest.raises(InputError, match="two tables are named"):
        PublishedTables((table, table))
    with pytest.raises(InputError, match="there are t"):
        PublishedTables((table,), sums=(Sum("t", "u", np.zeros(2, dtype=np.int64)),))
    with pytest.raises(InputError, match="does not have"):
        PublishedTables((table,), equal=(Pair("t", np.array([0]), "t", np.array([5])),))
    with pytest.raises(InputError, match="at least 0"):
        noise_distribution("laplace", -1.0)
    with pytest.raises(InputError, match="name them all"):
        table.find({"j": [1]})
    assert table.find({"k": [1, 7]}).tolist() == [1, -1]
