"""What tests of releases share."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("released", "exported")
