"""A folder from a stranger cannot decide which Python code is loaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cbdp
from cbdp.errors import InputError


@pytest.mark.slow
@pytest.mark.parametrize("where", ["mechanism", "rounding", "estimator", "law"])
def test_a_manifest_that_names_code_is_refused(where: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Neither verified nor unverified is the module imported; one that is loaded already was somebody's own choice."""
    (tmp_path / "stranger.py").write_text("raise AssertionError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    dag = cbdp.FeatureDag(cbdp.Universe(stop=["A", "B", "C"], time=["am", "pm"]), [])
    path = cbdp.ConstraintBased(dag, 1).release(np.arange(6)).save(tmp_path / "out").path
    manifest = json.loads((path / "manifest.json").read_text("utf-8"))
    if where == "mechanism":
        manifest["recipe"]["mechanism"] = "stranger:Thing"
    elif where == "law":
        manifest["measurements"][0]["law"] = "stranger:Thing"
    else:
        manifest["recipe"]["settings"][where] = "stranger:Thing"
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for verify in (True, False):
        with pytest.raises(InputError, match="names code to load, 'stranger:Thing'"):
            cbdp.load(path, verify=verify)
    assert "stranger" not in sys.modules
