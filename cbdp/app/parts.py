"""Every kind of part that others may add, and what `cbdp parts` says of each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import getdoc
from typing import Any

from cbdp.app.printing import aligned
from cbdp.errors import InputError
from cbdp.parts import Parts, did_you_mean


@dataclass(frozen=True)
class PartKind:
    """Where the table of a kind is, and which capabilities of its parts are shown: title → attribute."""

    where: str
    shown: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> Parts[Any]:
        module, _, attribute = self.where.partition(":")
        found: Parts[Any] = getattr(import_module(module), attribute)
        return found


KINDS: Mapping[str, PartKind] = {
    "solvers": PartKind(
        "cbdp.solvers:SOLVERS",
        {"exact counts": "exact_values", "warm start": "warm", "trip types": "largest"},
    ),
    "mechanisms": PartKind("cbdp.mechanisms:MECHANISMS"),
    "estimators": PartKind("cbdp.estimate:ESTIMATORS"),
    "roundings": PartKind("cbdp.rounding:ROUNDINGS"),
    "budgets": PartKind("cbdp.privacy.budget:BUDGETS"),
    "laws": PartKind("cbdp.privacy.laws:LAWS"),
    "samplers": PartKind("cbdp.measuring.samplers:SAMPLERS"),
    "engines": PartKind("cbdp.trips.engines:ENGINES"),
    "presets": PartKind("cbdp.app.presets:PRESETS", {"follows": "follows"}),
    "formats": PartKind("cbdp.release.export:FORMATS"),
    "designers": PartKind("cbdp.transit:DESIGNERS"),
    "sizers": PartKind("cbdp.transit:SIZERS"),
    "dispatchers": PartKind("cbdp.transit:DISPATCHERS"),
    "modes": PartKind("cbdp.transit:MODE_CHOICES"),
}


def lines(kind: str | None = None) -> Iterator[str]:
    """All parts of one kind, or of every kind."""
    if kind is not None and kind not in KINDS:
        raise InputError(f"unknown kind of part {kind!r}: {did_you_mean(kind, list(KINDS))}")
    for name in [kind] if kind else KINDS:
        table = KINDS[name].table()
        yield f"{name} (other packages add theirs to the entry-point group {table.group})"
        yield from (f"  {line}" for line in aligned(rows(name)))
        yield ""


def rows(kind: str) -> list[tuple[str, ...]]:
    """A title, and a row for each part: name, package, whether it can be used, capabilities, a line about it."""
    shown, table = KINDS[kind].shown, KINDS[kind].table()
    made = [("name", "from", "installed", *shown, "about")]
    where = table.known()
    for name, part, broken in table.each():
        package = "cbdp" if name in table.table else where[name].partition(":")[0].partition(".")[0]
        if part is None:
            made.append((name, package, "no", *("" for _ in shown), broken))
            continue
        here = _installed(part)
        about = (
            _about(part) if here else f"{_about(part)} — {getattr(part, 'install', 'its package is missing')}"
        )
        capabilities = (_told(getattr(part, attribute, None)) for attribute in shown.values())
        made.append((name, package, "yes" if here else "no", *capabilities, about))
    return made


def _installed(part: Any) -> bool:
    return bool(part.installed()) if hasattr(part, "installed") else True


def _about(part: Any) -> str:
    """A part's line about itself; of one that has none, the first line of its documentation."""
    said = getattr(part, "about", "") or (getdoc(part) or "").partition("\n")[0]
    return str(said)


def _told(capability: Any) -> str:
    if isinstance(capability, bool):
        return "yes" if capability else "no"
    return (
        "any"
        if capability is None
        else f"≤ {capability:,}"
        if isinstance(capability, int)
        else str(capability)
    )
