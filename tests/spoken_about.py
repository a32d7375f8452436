"""What a publisher may say about a release, with characters that formats must escape."""

from __future__ import annotations

import datetime as dt

from cbdp.release import About, Dates

MARCH = Dates(dt.date(2026, 3, 1), dt.date(2026, 3, 31))
FULL = About(
    "Trips -- all of them",
    "Zürich & <around>",
    MARCH,
    "Transit “Authority”",
    "CC BY 4.0",
    "data@example.org",
    "Europe/Zurich",
)
