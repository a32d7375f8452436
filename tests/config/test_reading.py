"""The configuration: what is read from it, and that every mistake is told with its line."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cbdp import config
from cbdp.config.sections import budget_parts
from cbdp.errors import InputError
from cbdp.features import Feature, FeatureDag, Universe
from cbdp.privacy.budget import allocate

DESIGN = """\
[data]
trips   = "trips.parquet"
id      = "city buses"
stops   = "stops.csv"
columns = { origin = "start_stop", destination = "end_stop", time = "start_time", person = "card_id" }

[universe]
time         = { start = "06:00", end = "20:00", every = "30min" }
origin_is_destination = false       # a public structural zero

[[feature]]
name = "zone"
by   = ["origin.zone", "destination.zone", "time"]

[privacy]
epsilon = 1.0
unit    = "trip"
budget  = "uniform"
ledger  = "ledger.sqlite"

[mechanism]
name = "constraint-based"
weights = "size"
solver  = "newton"

[output]
path = "release"
"""

RICH = """\
preset = "odmts"

[data]
trips = ["a.csv", "b.csv"]
id = "taxi"
columns.origin = "PULocationID"
columns.time = "pickup"
stops = "gtfs.zip"
stop_columns = { lat = "y", lon = "x" }
timezone = "America/New_York"
time_format = "%m/%d/%Y %H:%M"
holidays = { "2026-07-03" = "sunday" }
expected_trips = 1_000_000

[universe]
time = [
  { name = "am", start = "6:00", end = "9:00" },
  { name = "pm", start = "09:00", end = "24:00" },
]
days = { first = 2026-03-02, last = "2026-03-08" }
zones = { clusters = 8 }
modes = { table = "pairs.csv", of = ["origin.zone", "destination.zone"], otherwise = "walk" }

[universe.dimensions]
fare = ["adult", "child"]
route = { file = "routes.csv", column = "id", attributes = { agency = "agency_id" } }

[privacy]
epsilon = "1/3"
delta = 1e-6
unit = { person = "person", max_trips = 4 }
budget = { total = 0.1, time = "7/30" }
cap = 2

[mechanism]
name = "constraint-based"
weights = { total = 2.5, time = "size" }

[output]
export = ["csv", "omx"]
noise_bound = 0.25
"""

SCHEMA = jsonschema.Draft202012Validator(config.schema())
LEAST = '[data]\ntrips = "t.parquet"\nid = "t"\n[privacy]\nepsilon = 1\n'


def test_the_configuration_of_the_design_is_read() -> None:
    """Every value of the documented example arrives as it was written."""
    read = config.parse(DESIGN)
    assert read.data.trips == ("trips.parquet",)
    assert read.data.columns["person"] == "card_id"
    assert read.universe.time == config.TimeGrid("06:00", "20:00", "30min")
    assert read.universe.origin_is_destination is False
    assert read.feature == (config.FeatureSection("zone", ("origin.zone", "destination.zone", "time")),)
    assert read.privacy == config.PrivacySection(Fraction(1), budget="uniform")
    assert read.mechanism == config.MechanismSection(
        "constraint-based", {"weights": "size", "solver": "newton"}
    )


def test_numbers_are_what_was_written() -> None:
    """One tenth is one tenth, fractions may be written as text, and long decimals lose no digit."""
    read = config.parse(RICH)
    assert read.privacy.epsilon == Fraction(1, 3)
    assert read.privacy.delta == Fraction(1, 10**6)
    assert read.privacy.budget == {"total": Fraction(1, 10), "time": Fraction(7, 30)}
    long = config.parse(LEAST.replace("epsilon = 1", "epsilon = 0.12345678901234567890123"))
    assert long.privacy.epsilon == Fraction("0.12345678901234567890123")


def test_everything_the_format_offers_is_read() -> None:
    """Lists of files, dotted keys, TOML dates, named periods, free dimensions and units of persons."""
    read = config.parse(RICH)
    assert read.data.trips == ("a.csv", "b.csv")
    assert dict(read.data.columns) == {"origin": "PULocationID", "time": "pickup"}
    assert read.universe.days == config.DaySpan("2026-03-02", "2026-03-08")
    assert isinstance(read.universe.time, tuple)
    assert read.universe.time[1] == config.NamedPeriod("pm", "09:00", "24:00")
    assert read.universe.dimensions["fare"] == ("adult", "child")
    assert read.universe.dimensions["route"].attributes == {"agency": "agency_id"}
    assert read.privacy.unit == config.UnitSection(person="person", max_trips=4)
    assert read.mechanism.settings["weights"] == {"total": 2.5, "time": "size"}


def test_what_is_left_out_has_defaults() -> None:
    """Trips and ε are enough to be read."""
    read = config.parse(LEAST)
    assert read.mechanism.name == "constraint-based"
    assert (read.output.confidence, read.output.noise_bound, read.output.path) == (0.9, 0.5, "release")
    assert read.privacy.ledger == "ledger.sqlite"
    assert read.universe == config.UniverseSection()


def test_budgets_targets_and_estimators_are_read() -> None:
    """Budgets by name, targets as fractions, and how counts are estimated arrive as written."""
    text = (
        LEAST
        + 'target = { singleton = 1, zone = "2/3" }\n[mechanism]\nestimator = "posterior"\nprior = "w.csv"\n'
    )
    read = config.parse(text.replace("[privacy]", "expected_filled = 0.05\n[privacy]"))
    assert read.privacy.target == {"singleton": 1, "zone": Fraction(2, 3)}
    assert read.data.expected_filled == 0.05
    assert read.mechanism == config.MechanismSection(settings={"estimator": "posterior", "prior": "w.csv"})
    for budget in budget_parts().table:
        assert config.parse(f'{LEAST}budget = "{budget}"\n').privacy.budget == budget


def test_every_named_budget_is_one_of_the_mechanism() -> None:
    """What the configuration offers, the program can share ε by."""
    dag = FeatureDag(Universe(origin=["A", "B"], time=["am", "pm"]), [Feature("time", by="time")])
    for budget in budget_parts().table:
        made = allocate(dag, 1, budget, target={"time": 1})
        assert sum(made.values()) == 1


# What is wrong in its shape: replacement in RICH, the line, what is said. A JSON Schema must refuse each as well.
WRONG = [
    ("expected_trips = 1_000_000", "expected_trip = 9", 13, "[data] has no setting 'expected_trip': did you mean 'expected_trips'?"),
    ('preset = "odmts"', 'preset = "odmst"', 1, "preset is 'odmst': did you mean 'odmts'?"),
    ('preset = "odmts"', "preset = 5", 1, "preset is 5: give text in quotes"),
    ("[output]", "[outptu]", 39, "the configuration has no setting 'outptu': did you mean 'output'?"),
    ('trips = ["a.csv", "b.csv"]', "", 3, "[data] needs 'trips': give a path or a URL"),
    ('id = "taxi"', "", 3, "[data] needs 'id': give a public name for this data set, for example id = \"city buses 2026-03\""),
    ('id = "taxi"', 'id = "two\\nlines"', 5, "data.id is 'two\\nlines': give a public name"),
    ('id = "taxi"', 'id = "taxi"\nriders = ""', 6, "data.riders is '': give a line of at most 200 characters"),
    ('trips = ["a.csv", "b.csv"]', "trips = []", 4, "data.trips is an empty list: give a path"),
    ('trips = ["a.csv", "b.csv"]', 'trips = [\n"a.csv", \n 5]', 6, "data.trips is 5: give a path"),
    ('columns.time = "pickup"', "columns.time = 7", 7, "data.columns.time is 7: give text"),
    ("{ lat =", "{ latt =", 9, "data.stop_columns has no 'latt': did you mean 'lat'?"),
    ('"2026-07-03" =', '"3 July" =', 12, "is '3 July': give a day like"),
    ("expected_trips = 1_000_000", "expected_trips = 1.5", 13, "expected_trips is 1.5: give a whole number of at least 1"),
    ("expected_trips = 1_000_000", "expected_trips = true", 13, "expected_trips is true: give a whole number"),
    ('start = "6:00"', 'start = "6 am"', 17, "universe.time.start is '6 am': give a time of day like"),
    (', end = "24:00"', "", 18, "[universe.time] needs 'end'"),
    ("last = ", "lsat = ", 20, "[universe.days] has no setting 'lsat': did you mean 'last'?"),
    ("first = 2026-03-02", 'first = "2026-3-2"', 20, "universe.days.first is '2026-3-2': give a day like"),
    ("zones = { clusters = 8 }", "zones = { clusters = 0 }", 21, "clusters is 0: give a whole number of at least 1"),
    ("zones = { clusters = 8 }", 'zones = { clusters = 8, column = "z" }', 21, "zones has column and clusters: choose one"),
    ("zones = { clusters = 8 }", "zones = {}", 21, "zones needs one of column, polygons, balanced, clusters: choose one"),
    ("zones = { clusters = 8 }", 'zones = { clusters = 8, label = "z" }', 21, "has 'label', which needs 'polygons'"),
    ('modes = { table = "pairs.csv", of', 'modes = { column = "m", of', 22, "has 'column', which needs 'values'"),
    ('fare = ["adult", "child"]', 'fare = ["adult", 1.5]', 25, "universe.dimensions.fare is 1.5: give text"),
    ('fare = ["adult", "child"]', 'fare = "stop"', 25, "fare is 'stop': did you mean 'stops'?"),
    ('column = "id"', 'colum = "id"', 26, "has no setting 'colum': did you mean 'column'?"),
    ('epsilon = "1/3"', "epsilon = -1", 29, "privacy.epsilon is -1, it must be above 0"),
    ('epsilon = "1/3"', "epsilon = 0", 29, "privacy.epsilon is 0, it must be above 0"),
    ('epsilon = "1/3"', "epsilon = true", 29, "privacy.epsilon is true: give a number above 0"),
    ('epsilon = "1/3"', "", 28, "privacy needs one of epsilon, rho: choose one"),
    ("delta = 1e-6", "delta = 1.5", 30, "privacy.delta is 1.5, it must be at least 0 and below 1"),
    (", max_trips = 4", "", 31, "has 'person', which needs 'max_trips': add it"),
    ("max_trips = 4", "max_trips = 0", 31, "max_trips is 0: give a whole number of at least 1"),
    ('unit = { person = "person", max_trips = 4 }', 'unit = "tripp"', 31, "unit is 'tripp': did you mean 'trip'?"),
    ('unit = { person = "person", max_trips = 4 }', "unit = 1", 31, "unit is 1: give text in quotes or a table"),
    ("total = 0.1", "total = 0", 32, "privacy.budget.total is 0, it must be above 0"),
    ("cap = 2\n", "target = { zone = 0 }\n", 33, "privacy.target.zone is 0, it must be above 0"),
    ("cap = 2\n", 'target = "zone"\n', 33, "privacy.target is 'zone': give a table like"),
    ('budget = { total = 0.1, time = "7/30" }', 'budget = "leafs"', 32, "budget is 'leafs': did you mean 'leaves'?"),
    ("expected_trips = 1_000_000", "expected_filled = 1.5", 13, "expected_filled is 1.5: give a number above 0 and below 1"),
    ("weights = { total = 2.5", 'preset = "papers"\nweights = { total = 2.5', 37, "preset is 'papers': did you mean 'paper'?"),
    ("weights = { total = 2.5", 'estimator = "mean"\nweights = { total = 2.5', 37, "estimator is 'mean': there are posterior, projection"),
    ('name = "constraint-based"', 'name = "constraint"', 36, "did you mean 'constraint-based'?"),
    ("total = 2.5", "total = -2.5", 37, "mechanism.weights.total is -2.5: give a number above 0"),
    ('"omx"', '"omxx"', 40, "output.export is 'omxx': did you mean 'omx'?"),
    ("noise_bound = 0.25", "confidence = 1.0", 41, "output.confidence is 1.0: give a number above 0 and below 1"),
]  # fmt: skip


def _plain(value: Any) -> Any:
    """TOML as JSON has it: dates are text."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float) else value.isoformat()


@pytest.mark.parametrize(("old", "new", "line", "said"), WRONG, ids=[f"{w[1]}"[:40] or w[0] for w in WRONG])
def test_what_is_wrong_is_one_line_with_its_place(old: str, new: str, line: int, said: str) -> None:
    """Each mistake is told with the file, the line it stands on, the value and a cure; the schema refuses it too."""
    assert RICH.count(old) == 1
    text = RICH.replace(old, new)
    with pytest.raises(InputError) as caught:
        config.parse(text, "my.toml")
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"my.toml:{line}: ")
    assert "\n" not in message
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(_plain(tomllib.loads(text)))


@pytest.mark.parametrize("text", [DESIGN, RICH, LEAST])
def test_examples_meet_the_schema(text: str) -> None:
    """What is read without complaint is valid by the JSON Schema, and the schema itself is sound."""
    config.parse(text)
    SCHEMA.check_schema(config.schema())
    SCHEMA.validate(_plain(tomllib.loads(text)))


def test_the_shipped_schema_is_that_of_the_code() -> None:
    """`config.schema.json` is what the dataclasses say (write it anew with `make schema`)."""
    assert json.loads(config.SCHEMA.read_text(encoding="utf-8")) == config.schema()


def test_schema_and_dataclasses_name_the_same_settings() -> None:
    """Every field of every table stands in the schema with a description, and nothing else does."""
    tables = config.schema()["properties"]
    for name, cls in (
        ("data", config.DataSection),
        ("universe", config.UniverseSection),
        ("privacy", config.PrivacySection),
        ("output", config.OutputSection),
    ):
        assert set(tables[name]["properties"]) == {f.name for f in dataclasses.fields(cls)}
        assert all(entry["description"] for entry in tables[name]["properties"].values())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[data]\ntrips = \n", 2),
        ("[data]\n\n\ntrips 5\n", 4),
        ('[data]\ntrips = "a\n', 2),
        ("[data]\ntrips = [1,\n2\n", 3),
        ("[data]\na = 1\n\n[data]\n", 4),
    ],
)
def test_text_that_is_not_toml_is_told_with_its_line(text: str, line: int) -> None:
    """The parser's own complaint, in one line of ours."""
    with pytest.raises(InputError, match="this is not valid TOML") as caught:
        config.parse(text, "x.toml")
    assert str(caught.value).startswith(f"x.toml:{line}: ")
    assert "\n" not in str(caught.value)


def test_a_decimal_comma_names_the_cure() -> None:
    """As many countries write numbers. A list over two lines is another mistake."""
    with pytest.raises(InputError, match=r"^x\.toml:2: .*; write decimals with a point, like 0\.5$"):
        config.parse("[privacy]\nepsilon = 0,5  # of the release\n", "x.toml")
    with pytest.raises(InputError) as caught:
        config.parse("[data]\ntrips = [1,2\n", "x.toml")
    assert "point" not in str(caught.value)


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ('# [about]\ntitle = "Trips"\n', "8: [output] has no setting 'title': remove the # before [about] in line 7"),
        ('  #[about]  # optional\ntitle = "Trips"\n', "8: [output] has no setting 'title': remove the # before [about] in line 7"),
        ("# [about]\n[universe]\ndayz = 1\n", "9: [universe] has no setting 'dayz': did you mean 'days'"),
        ('path = "r"\n# [about]\npath = "s"\n', "9: this is not valid TOML: this key stands in its table already: remove the # before [about] in line 8"),
    ],
)  # fmt: skip
def test_keys_below_a_commented_table_name_the_cure(below: str, said: str) -> None:
    """They land in the table before; only a comment right above them explains it."""
    with pytest.raises(InputError) as caught:
        config.parse(f"{LEAST}[output]\n{below}", "x.toml")
    assert str(caught.value).startswith(f"x.toml:{said}")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and a file that is not text are one clear line each."""
    with pytest.raises(InputError, match=r"there is no configuration .*none\.toml.*cbdp init"):
        config.read(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        config.read(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be a UTF-8 file"):
        config.read(tmp_path / "bytes.toml")


def test_paths_are_relative_to_the_configuration(tmp_path: Path) -> None:
    """Wherever the program runs, a path is seen from the configuration's folder; a full path stays."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.toml").write_text(
        "\ufeff" + LEAST.replace("\n", "\r\n"), encoding="utf-8", newline=""
    )
    read = config.read(tmp_path / "sub" / "c.toml")
    assert read.path("../t.parquet") == tmp_path / "sub" / ".." / "t.parquet"
    assert read.path("/data/t.parquet") == Path("/data/t.parquet")
