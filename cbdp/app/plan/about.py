"""What a plan says about the release: the publisher's words."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields

from cbdp.app.config import Config, DaySpan
from cbdp.release import About, Dates


def about_of(config: Config) -> About | None:
    """The publisher's words, and the time zone of the data; none if nothing is said. They are no part of the request: a new title costs no new ε."""
    section, zone = config.about, config.data.timezone
    if section is None or all(getattr(section, f.name) is None for f in fields(section)):
        return None if zone is None else About(timezone=zone)
    with config.source.at("about"):
        period = section.period
        return About(
            section.title,
            section.place,
            _dates(config, period) if isinstance(period, DaySpan) else period,
            section.publisher,
            section.licence,
            section.contact,
            section.timezone or zone,
        )


def _dates(config: Config, span: DaySpan) -> Dates:
    with config.source.at("about", "period"):
        return Dates(dt.date.fromisoformat(span.first), dt.date.fromisoformat(span.last))
