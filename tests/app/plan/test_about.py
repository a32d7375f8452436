"""`[about]` in a configuration: what the publisher says, read with the place of what is wrong with it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from small_city import plan_of

from cbdp.errors import InputError
from cbdp.forecast import explain
from cbdp.release import About, Dates

OUTPUT = '[output]\npath = "release"\n'


def _about(folder: Path, text: str, *changes: tuple[str, str]) -> About | None:
    return plan_of(folder, (OUTPUT, f"{OUTPUT}\n[about]\n{text}\n"), *changes).about


def test_what_is_said_is_handed_on(city: Path) -> None:
    """Every line; days as dates; nothing at all where nothing is said."""
    lines = ["title", "place", "period", "publisher", "licence", "contact", "timezone"]
    text = "\n".join(f'{name} = "the {name}, ü"' for name in lines)
    assert _about(city, text) == About(*(f"the {name}, ü" for name in lines))
    days = Dates(dt.date(2026, 3, 1), dt.date(2026, 3, 31))
    for written in (
        '{ first = "2026-03-01", last = "2026-03-31" }',
        "{ first = 2026-03-01, last = 2026-03-31 }",
    ):
        assert _about(city, f"period = {written}") == About(period=days)
    assert _about(city, "") is None
    assert plan_of(city).about is None


def test_times_are_in_the_zone_of_the_data(city: Path) -> None:
    """Unless another one is named, also where nothing else is said."""
    zoned = ("[universe]\n", 'timezone = "Europe/Zurich"\n\n[universe]\n')
    assert _about(city, 'title = "Trips"', zoned) == About("Trips", timezone="Europe/Zurich")
    assert _about(city, 'timezone = "local time"', zoned) == About(timezone="local time")
    assert plan_of(city, zoned).about == About(timezone="Europe/Zurich")
    assert plan_of(city).about is None


def test_words_are_no_part_of_the_request(city: Path) -> None:
    """A better title is no other release: it must not be charged."""
    plain, titled = plan_of(city), plan_of(city, (OUTPUT, f'{OUTPUT}\n[about]\ntitle = "Trips"\n'))
    assert titled.about is not None
    assert plain.request == titled.request


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('titel = "Trips"', r"has no setting 'titel': did you mean 'title'"),
        ("title = 7", r"about\.title is 7: .*a line of at most 200 characters"),
        ('title = ""', r"about\.title is '': .*a line of at most 200 characters"),
        (f'title = "{"x" * 201}"', r"about\.title is .*a line of at most 200 characters"),
        ('place = """two\nlines"""', r"about\.place is .*a line of at most 200 characters"),
        ('place = """ends with a line end\n"""', r"about\.place is .*a line of at most 200 characters"),
        (r'contact = "bell \u0007"', r"about\.contact is .*a line of at most 200 characters"),
        (r'licence = "turned \u202e"', r"about\.licence contains the character"),
        (
            'period = { first = "2026-03-02", last = "2026-03-01" }',
            "is before the first, 2026-03-02: swap them",
        ),
        ('period = { first = "2026-03-02" }', "needs 'last'"),
        ('period = { first = "March", last = "April" }', 'a day like "2026-03-02"'),
    ],
)
def test_what_cannot_be_said_is_told_with_its_line(city: Path, text: str, said: str) -> None:
    """File, line, what is wrong and the cure, before anything is read or spent."""
    with pytest.raises(InputError, match=said) as refused:
        _about(city, text)
    line = (city / "cbdp.toml").read_text().splitlines().index("[about]") + 1
    assert str(refused.value).startswith(
        (f"{city / 'cbdp.toml'}:{line}: ", f"{city / 'cbdp.toml'}:{line + 1}: ")
    )


def test_check_shows_what_would_be_said(city: Path) -> None:
    """The curator reads it before it is public."""
    plan = plan_of(
        city,
        (
            OUTPUT,
            f'{OUTPUT}\n[about]\ntitle = "Trips"\nperiod = {{ first = 2026-03-01, last = 2026-03-31 }}\n',
        ),
    )
    said = " ".join(explain(plan).text.split())
    assert "It says about itself: title 'Trips', period '2026-03-01 to 2026-03-31'." in said
    assert "about itself" not in explain(plan_of(city)).text
