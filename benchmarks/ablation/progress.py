"""What the benchmark is at, on standard error: standard output holds the report alone."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    print(f"ablation: {text}", file=sys.stderr)
