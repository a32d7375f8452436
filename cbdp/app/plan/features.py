"""The features of a plan: those of a preset, and those that the configuration states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cbdp.app.config import Config, FeatureSection
from cbdp.app.plan.trips import PLACES
from cbdp.features import Feature, FeatureDag, Universe, odmts, opal
from cbdp.features.presets import EXTRA, extra_features
from cbdp.parts import did_you_mean


def features_of(config: Config, universe: Universe) -> FeatureDag:
    given = [_feature(config, universe, n, entry) for n, entry in enumerate(config.feature)]
    known = _preset(config, universe) if config.preset else []
    if config.preset == "odmts":
        named = {f.name for f in (*known, *given)}
        known += extra_features([n for n in config.privacy.target or () if n in EXTRA and n not in named])
    for n, feature in enumerate(given):
        if feature.name in [f.name for f in (*known, *given[:n])]:
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


def _preset(config: Config, universe: Universe) -> list[Feature]:
    """The features of a preset, as far as the universe has what they group by."""
    needs = {"odmts": (*PLACES, "time"), "opal": ("tap", "time", "location")}[str(config.preset)]
    for name in needs:
        if name not in universe.dimensions:
            raise config.source.error(
                ("preset",),
                f"the preset {config.preset!r} needs the dimension {name!r}: add it to the universe",
            )
    if config.preset == "opal":
        return list(opal(universe).features.values())
    zoned = {"origin.zone", "destination.zone"} <= set(universe.attributes)
    found = list(odmts(universe, level=4 if zoned else 3).features.values())
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
