"""The features of a plan: those of a preset, and those that the configuration states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cbdp.app.config import Config, FeatureSection
from cbdp.app.plan.public_files import PLACES
from cbdp.features import SINGLETON, TOTAL, Feature, FeatureDag, Universe
from cbdp.features.presets import EXTRA, extra_features, opal_features, told_apart
from cbdp.parts import did_you_mean

STOPS_TOLD = (
    2**22
)  # trip types up to which stops get tables of their own: every type is then a cell, which takes minutes beyond


def features_of(config: Config, universe: Universe) -> FeatureDag:
    given = [_feature(config, universe, n, entry) for n, entry in enumerate(config.feature)]
    known = _preset(config, universe, given) if config.preset else []
    if config.preset == "odmts":
        named = {f.name for f in (*known, *given)}
        known += extra_features([n for n in config.privacy.target or () if n in EXTRA and n not in named])
    ends = (TOTAL, SINGLETON) if config.preset else ()
    for n, feature in enumerate(given):
        if feature.name in [*ends, *(f.name for f in (*known, *given[:n]))]:
            raise config.source.error(
                ("feature", n, "name"),
                f"there is already a feature {feature.name!r}: give this one another name",
            )
    with config.source.at("feature"):
        return FeatureDag(universe, [*known, *given])


def _feature(config: Config, universe: Universe, n: int, entry: FeatureSection) -> Feature:
    for k, attribute in enumerate(entry.by):
        if attribute not in universe.attributes:
            cure = did_you_mean(attribute, list(universe.attributes))
            raise config.source.error(
                ("feature", n, "by", k),
                f"the feature {entry.name!r} groups by {attribute!r}, which is not an attribute: {cure}",
            )
    with config.source.at("feature", n):
        return Feature(entry.name, entry.by)


def _preset(config: Config, universe: Universe, given: Sequence[Feature]) -> list[Feature]:
    """The features of a preset, as far as the universe has what they group by, and then tables for what these do not tell apart.

    Those are added unless the configuration has them: tables of its own by the same name, or by the same attributes.
    """
    needs = {"odmts": (*PLACES, "time"), "opal": ("tap", "time", "location")}[str(config.preset)]
    for name in needs:
        if name not in universe.dimensions:
            raise config.source.error(
                ("preset",),
                f"the preset {config.preset!r} needs the dimension {name!r}: add it to the universe",
            )
    taps = config.preset == "opal"
    own = opal_features() if taps else _of_odmts(universe)
    added = told_apart(universe, own, beside=["tap"] if taps else ())
    if not taps and not _zoned(universe) and universe.size <= STOPS_TOLD:
        added += extra_features(
            PLACES
        )  # nothing else tells places apart; every trip type is then a cell of its own
    names, groups = {f.name for f in given}, [set(f.by) for f in given]
    return [*own, *(f for f in added if f.name not in names and set(f.by) not in groups)]


def _zoned(universe: Universe) -> bool:
    return {"origin.zone", "destination.zone"} <= set(universe.attributes)


def _of_odmts(universe: Universe) -> list[Feature]:
    found = [Feature("time", by="time")]
    if _zoned(universe):
        found.append(Feature("zone", by=["origin.zone", "destination.zone", "time"]))
    return [*found, Feature("mode", by=["mode", "time"])] if "mode" in universe.attributes else found


def check_features(config: Config, features: FeatureDag, keys: tuple[str, ...], names: Iterable[str]) -> None:
    """Whether what is written under these keys (a list, or a table by feature) names features."""
    for n, name in enumerate(names):
        if name not in features:
            cure = did_you_mean(name, list(features.features))
            last = name if isinstance(names, Mapping) else n
            raise config.source.error(
                (*keys, last), f"{'.'.join(keys)} names {name!r}, which is not a feature: {cure}"
            )
