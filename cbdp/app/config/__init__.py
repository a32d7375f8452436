"""The configuration of a release: TOML read into frozen values. Every error names its file and line."""

from cbdp.app.config.mechanism import MechanismSection
from cbdp.app.config.positions import TomlFile, Where, key_lines
from cbdp.app.config.privacy import PrivacySection, UnitSection
from cbdp.app.config.reading import SCHEMA, parse, read, schema
from cbdp.app.config.series import DayRange, SeriesSection
from cbdp.app.config.settings import (
    AboutSection,
    Config,
    DataSection,
    DaySpan,
    FeatureSection,
    ListingFile,
    ModesSection,
    NamedPeriod,
    OutputSection,
    TimeGrid,
    UniverseSection,
    ZonesSection,
)

__all__ = [
    "SCHEMA",
    "AboutSection",
    "Config",
    "DataSection",
    "DayRange",
    "DaySpan",
    "FeatureSection",
    "ListingFile",
    "MechanismSection",
    "ModesSection",
    "NamedPeriod",
    "OutputSection",
    "PrivacySection",
    "SeriesSection",
    "TimeGrid",
    "TomlFile",
    "UnitSection",
    "UniverseSection",
    "Where",
    "ZonesSection",
    "key_lines",
    "parse",
    "read",
    "schema",
]
