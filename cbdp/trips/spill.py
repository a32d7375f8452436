"""Where an engine puts what does not fit in memory: a private folder that is removed in any case.

It is readable by its owner alone, and removed when the work ends or fails. What a killed process left behind is swept when the next
one starts (`cbdp.scratch`).
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cbdp.scratch import locked_folder, owned
from cbdp.scratch import sweep as sweep_abandoned

PREFIX = "cbdp-spill-"


@contextlib.contextmanager
def spill_folder() -> Iterator[Path]:
    """A private folder for the time of the work."""
    sweep()
    folder = Path(tempfile.gettempdir()) / owned(PREFIX)
    with locked_folder(folder, 0o700):
        yield folder


def sweep() -> None:
    """Remove our folders whose process is gone."""
    sweep_abandoned(Path(tempfile.gettempdir()), re.escape(PREFIX), "")
