"""Which service day has ended, for the agency. The calendar is stated; the clock only says how far it has got."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from cbdp.app.config import Config
from cbdp.errors import InputError
from cbdp.features.calendar import seconds_of
from cbdp.trips.clock import Clock, fixed_offset


def last_ended_day(config: Config, now: dt.datetime | None = None) -> dt.date:
    """The last service day that is over: in the agency's time zone, from the hour at which its days begin."""
    zone = _zone(config.data.timezone)
    moment = (now or dt.datetime.now(dt.UTC)).astimezone(zone)
    starts: str = getattr(config.data, "day_starts", None) or Clock().day_starts
    service = moment.replace(tzinfo=None) - dt.timedelta(seconds=seconds_of(starts))
    return service.date() - dt.timedelta(days=1)


def until_of(config: Config, given: str | None) -> dt.date:
    """The day that is asked for, or the last that is over."""
    if given is None:
        return last_ended_day(config)
    try:
        return dt.date.fromisoformat(given)
    except ValueError:
        raise InputError(f"--until is {given!r}: write a day like 2026-11-15") from None


def check_over(config: Config, until: dt.date, now: dt.datetime | None = None) -> None:
    """Refuse to release a day before it is over: its later rows would be in no release, ever."""
    last = last_ended_day(config, now)
    if until > last:
        raise InputError(
            f"{until} is not over: the last service day that is, by this machine's clock and data.timezone, is {last}. A release of a day "
            "that goes on would leave its later trips out for ever"
        )


def _zone(name: str | None) -> dt.tzinfo | None:
    """The agency's zone; that of this machine where none is stated."""
    if name is None:
        return None
    offset = fixed_offset(name)
    return ZoneInfo(name) if offset is None else dt.timezone(dt.timedelta(seconds=offset))
