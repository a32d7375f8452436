"""The page of `cbdp plan` in a real browser: its numbers are those of `cbdp check`, wherever its sliders stand."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from browsing import DESKTOP, PHONE, opened
from daily_city import write_daily_city
from small_city import CONFIG, write_city

from cbdp.app import cli, init
from cbdp.app.cli import plan_of_file
from cbdp.datasets import practice
from cbdp.forecast.errors import amount_text, percent, posterior_belief
from cbdp.numbers import percent_at_most
from cbdp.privacy.accounting import epsilon_of, readable_epsilon

Captured = pytest.CaptureFixture[str]

ZONES = "id,name,lat,lon,zone\n" + "".join(
    f"S{n},Stop {n},{42 + n / 100},{-83 + (n % 3) / 50},z{n % 4}\n" for n in range(6)
)
LISTEN = "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { window.taken = text; } } })"
PERSON = ("cap = 2.0", 'cap = 2.0\nunit = { person = "card", max_trips = 3, per = "day", apart = "time" }')
RHO = (("epsilon = 1.0", 'rho = 0.02\nlaw = "gaussian"'), PERSON)
NAMED = (
    'time = { start = "06:00", end = "10:00", every = "1h" }',
    'time = [{ name = "early", start = "06:00", end = "08:00" }, { name = "late", start = "08:00", end = "10:00" }]',
)
DELTA = ("epsilon = 1.0", 'epsilon = 1.0\ndelta = 1e-7\nlaw = "gaussian"')


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the city as it is configured."""
    return page_of(tmp_path_factory.mktemp("plan"))


def page_of(folder: Path, *changes: tuple[str, str]) -> str:
    """The page that the command writes for a small city with four zones."""
    text = CONFIG
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    write_files(folder, text)
    assert cli.main(["plan", str(folder / "cbdp.toml"), "--page", str(folder / "plan.html")]) == 0
    return (folder / "plan.html").read_text(encoding="utf-8")


def write_files(folder: Path, text: str) -> None:
    write_city(folder)
    (folder / "stops.csv").write_text(ZONES)
    (folder / "cbdp.toml").write_text(text)


def checked(page: Any, folder: Path, capsys: Captured) -> dict[str, Any]:
    """What `cbdp check` says of the configuration that the page hands out."""
    page.evaluate("window.taken = null")
    page.click("#copy-all")
    page.wait_for_function("window.taken !== null")
    (folder / "taken.toml").write_text(page.evaluate("window.taken"), encoding="utf-8")
    capsys.readouterr()
    assert cli.main(["check", str(folder / "taken.toml"), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def shown(page: Any) -> dict[str, dict[str, str]]:
    """By table, what the page shows."""
    read = """articles => articles.map(a => [a.dataset.table, Object.fromEntries(
        ['error', 'relative', 'margin', 'sentence', 'pill', 'good-from'].map(c => [c, (a.querySelector('.' + c) || {}).textContent || '']))])"""
    return dict(page.eval_on_selector_all("#told article", read))


def agree(page: Any, folder: Path, capsys: Captured) -> dict[str, Any]:
    """Every number of every table, as it is printed."""
    found, seen = checked(page, folder, capsys), shown(page)
    assert list(seen) == [t["table"] for t in found["tables"]]
    for table in found["tables"]:
        own = seen[table["table"]]
        assert own["error"] == amount_text(table["error"]), table
        assert own["relative"] == percent(table["within"]), table
        assert own["sentence"] == table["example"]
        assert own["good-from"] == ("" if table["good_from"] == 1 else f"{table['good_from']:,}"), table
        assert own["margin"] == ("" if table["noise"] is None else f"±{table['noise']:,}"), table
        assert own["pill"][2:].lower() == (table["good_for"] or "say how many trips there are")
    return found


def move(page: Any, slider: str, place: int) -> None:
    page.fill(f"#{slider}", str(place))


@pytest.fixture
def opened_page(browser: Any, tmp_path: Path, html: str) -> Iterator[Any]:
    write_files(tmp_path, CONFIG)
    with opened(browser, tmp_path, html) as page:
        page.evaluate(LISTEN)
        yield page


def test_every_slider_moves_the_numbers_as_check_has_them(
    opened_page: Any, tmp_path: Path, capsys: Captured
) -> None:
    """ε, periods, zones, trips, budgets and shares: each changes what is shown, and `check` agrees with all of it."""
    page = opened_page
    before = shown(page)
    first = agree(page, tmp_path, capsys)
    assert first["epsilon"] == 1
    for slider, place in (
        ("amount", 12),
        ("period", 0),
        ("period", 3),
        ("zone", 1),
        ("zone", 2),
        ("trips", 9000),
    ):
        move(page, slider, place)
        after = shown(page)
        assert after != before, slider
        agree(page, tmp_path, capsys)
        before = after
    page.fill("#trips", "")
    assert agree(page, tmp_path, capsys)["expected_trips"] is None
    move(page, "trips", 9000)
    for budget in ("tables", "leaves", "uniform"):
        page.evaluate("document.querySelector('#sharing').open = true")
        page.select_option("#budget", budget)
        assert shown(page) != before
        assert agree(page, tmp_path, capsys)["epsilon"] == 0.15
        before = shown(page)
    move(page, "share-zone", 599)
    after = agree(page, tmp_path, capsys)
    assert [t["share_exact"] for t in after["tables"] if t["table"] == "zone"] == ["9/100"]
    page.click("#again")
    assert agree(page, tmp_path, capsys)["tables"] == first["tables"]


@pytest.mark.parametrize("changes", [(PERSON,), RHO, (DELTA,)], ids=["person", "rho", "epsilon-delta"])
def test_units_and_laws_agree_too(
    changes: tuple[tuple[str, str], ...], browser: Any, tmp_path: Path, capsys: Captured
) -> None:
    """Trips of one person that count, and Gaussian noise paid for in ρ, or in ε at a δ."""
    with opened(browser, tmp_path, page_of(tmp_path, *changes)) as page:
        page.evaluate(LISTEN)
        first = agree(page, tmp_path, capsys)
        move(page, "amount", page.evaluate("Number(document.querySelector('#amount').value) - 4"))
        assert agree(page, tmp_path, capsys)["epsilon"] < first["epsilon"]
        if page.is_visible("#k"):
            before = shown(page)
            move(page, "k", 5)
            assert shown(page) != before
            assert "6 trips" in agree(page, tmp_path, capsys)["unit"]
        page.evaluate("document.querySelector('#sharing').open = true")
        move(page, "share-total", 299)
        agree(page, tmp_path, capsys)
        page.select_option("#unit", "trip" if page.input_value("#unit") == "person" else "person")
        agree(page, tmp_path, capsys)


@pytest.mark.parametrize(
    "changes",
    [
        (("cap = 2.0", "cap = 2.0\nbudget = { total = 0.05, time = 0.15, zone = 0.3, mode = 0.2, singleton = 0.3 }"),),
        (("cap = 2.0", "cap = 2.0\ntarget = { zone = 2, singleton = 1 }"), ("epsilon = 1.0", 'epsilon = "1/3"')),
        (("cap = 2.0", "cap = 2.0\npublic = { total = 50000 }"), ("expected_trips = 60000\n", "expected_filled = 0.4\n")),
        (NAMED, ("cap = 2.0", 'cap = 2.0\nbudget = "geometric"'), ('preset = "odmts"', "")),
    ],
    ids=["given", "target", "public", "named"],
)  # fmt: skip
def test_every_way_to_state_a_plan_agrees(
    changes: tuple[tuple[str, str], ...], browser: Any, tmp_path: Path, capsys: Captured
) -> None:
    """Shares by hand, a target and an ε that is a fraction, a public total, named periods without zones; and with another ε."""
    with opened(browser, tmp_path, page_of(tmp_path, *changes)) as page:
        page.evaluate(LISTEN)
        agree(page, tmp_path, capsys)
        move(page, "amount", 15)
        assert agree(page, tmp_path, capsys)["epsilon"] == 0.3
        page.evaluate("document.querySelector('#sharing').open = true")
        move(page, "share-singleton", 499)
        agree(page, tmp_path, capsys)
        assert page.is_visible("#period") == (NAMED not in changes)


def test_a_series_has_a_page_too(browser: Any, tmp_path: Path, capsys: Captured) -> None:
    """Of its next release: a commuter's month is then twenty of them, and caps are for one person."""
    write_daily_city(tmp_path, days=3)
    assert cli.main(["plan", str(tmp_path / "cbdp.toml"), "--page", str(tmp_path / "plan.html")]) == 0
    with opened(browser, tmp_path, (tmp_path / "plan.html").read_text(encoding="utf-8")) as page:
        page.evaluate(LISTEN)
        move(page, "k", 3)
        move(page, "amount", 10)
        assert "at most 4 trips" in agree(page, tmp_path, capsys)["unit"]
        assert "ε = 2, odds" in page.text_content("[data-who=month]"), "twenty days at 0.1"
        assert "3 per day, 60 per 30 days" in page.text_content("#account")


def test_beliefs_are_bounded_as_the_definition_says(opened_page: Any) -> None:
    """Odds grow by e^ε for one trip, by e^40ε for a commuter's month, by e^4ε for four people; whatever was believed before."""
    page = opened_page
    assert page.text_content("[data-who=trip] .sure") == "at most 73.2 %"
    assert page.text_content("[data-who=family] .sure") == "at most 98.3 %"
    move(page, "prior", 0)
    move(page, "amount", 10)  # 0.1
    odds = 0.001 / 0.999 * 2.718281828 ** (0.1 * 40)
    sure = page.text_content("[data-who=month] .sure")
    assert float(sure.split()[-2]) == pytest.approx(100 * odds / (1 + odds), abs=0.1)
    assert float(sure.split()[-2]) >= 100 * odds / (1 + odds), "a bound is rounded up"
    assert "ε = 4, odds at most 54.6 times" in page.text_content("[data-who=month]")


def test_beliefs_where_noise_is_paid_for_in_rho(browser: Any, tmp_path: Path) -> None:
    """n days whose trips may fall into the same counts cost n² times ρ, four people 16 times; one trip moves one in and one out."""
    html = page_of(tmp_path, *RHO)
    plan = plan_of_file(str(tmp_path / "cbdp.toml"))
    trip = sum(2 * a.share / plan.mechanism.change(a.feature).l2_squared for a in plan.mechanism.answers())
    rho = {"trip": trip, "month": Fraction("0.02") * 20**2, "family": Fraction("0.02") * 16}
    with opened(browser, tmp_path, html) as page:
        for who, spent in rho.items():
            epsilon = epsilon_of(spent, Fraction(1, 10**6))
            said = page.text_content(f"[data-who={who}]")
            assert f"ε = {readable_epsilon(epsilon)}, odds" in said, (who, said)
            assert percent_at_most(posterior_belief(0.5, float(epsilon))) in said


def test_the_lines_alone_say_what_changed(opened_page: Any, tmp_path: Path) -> None:
    """They are TOML; a key that did not change is left out."""
    page = opened_page
    move(page, "period", 2)
    move(page, "amount", 15)
    found: Mapping[str, Any] = tomllib.loads(page.text_content("#snippet"))
    assert found == {
        "universe": {"time": {"start": "06:00", "end": "10:00", "every": "120min"}},
        "privacy": {"epsilon": 0.3},
    }


@pytest.mark.parametrize(("width", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_nothing_is_wider_than_the_screen(
    width: int, scheme: str, browser: Any, tmp_path: Path, html: str
) -> None:
    """Nothing scrolls sideways; and nothing was asked of any server (`opened` sees to that)."""
    with opened(browser, tmp_path, html, width, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.is_visible("#summary") == (width == PHONE)
        assert page.locator("#strip circle").count() == 7


def test_settings_do_not_scroll_on_a_phone(browser: Any, tmp_path: Path, html: str) -> None:
    """They are part of the page, not a window of their own."""
    with opened(browser, tmp_path, html, PHONE) as page:
        assert page.evaluate("getComputedStyle(document.querySelector('.settings')).overflow") == "visible"


def test_tap_ons_are_called_tap_ons(browser: Any, tmp_path: Path) -> None:
    """In every sentence on what would be published; a dimension with one value is not named."""
    (tmp_path / "taps.csv").write_text("stop,hour,tap,count\n")
    (tmp_path / "stops.csv").write_text(ZONES)
    file = init.write(tmp_path / "cbdp.toml", tmp_path / "taps.csv", tmp_path / "stops.csv")
    text = file.read_text().replace('tap = ["on", "off"] }', 'tap = ["on"] }')
    file.write_text(text.replace("# expected_trips = 100000", "expected_trips = 60000"))
    assert cli.main(["plan", str(file), "--page", str(tmp_path / "plan.html")]) == 0
    with opened(browser, tmp_path, (tmp_path / "plan.html").read_text(encoding="utf-8")) as page:
        told = [page.text_content(part) for part in ("header", "#controls", "#tables", "#risk", "footer")]
        assert all("tap-on" in words for words in told)
        assert not [words for words in told if re.search(r"\b[Tt]rips?\b", words)]
        assert "One location with 10,000 tap-ons would be published" in told[2]


def test_names_cannot_become_code(browser: Any, tmp_path: Path) -> None:
    """A data set's name is text."""
    from browsing import HOSTILE

    html = page_of(tmp_path, ('id = "city"', f"id = '''{HOSTILE[:190]}'''"))
    with opened(browser, tmp_path, html) as page:
        assert page.evaluate("window.hacked") is None
        assert HOSTILE[:20] in page.text_content("header")


def test_where_taps_are_counted_the_page_speaks_of_taps(browser: Any, tmp_path: Path) -> None:
    """In what is fixed and in what is drawn; what others promise, and how the page was tested, stays what it is."""
    for name in ("taps.csv", "stops.csv"):
        (tmp_path / name).write_text(practice.practice_files()[name], "utf-8")
    path = init.write(tmp_path / "cbdp.toml", tmp_path / "taps.csv", tmp_path / "stops.csv", count_taps=True)
    path.write_text(
        path.read_text("utf-8").replace("# expected_trips = 100000", "expected_trips = 40000", 1), "utf-8"
    )
    out = tmp_path / "plan.html"
    assert cli.main(["plan", str(path), "--page", str(out)]) == 0
    with opened(browser, tmp_path, out.read_text("utf-8")) as page:
        for part in ("header", "#controls", "#tables", "#risk", "#left"):
            text = page.inner_text(part)
            assert not re.search(r"\btrips?\b", text, re.IGNORECASE), text
        assert "A total of 40,000 taps would be published as" in page.inner_text("#told")
        assert "that a certain tap was made" in page.inner_text("#beliefs")
