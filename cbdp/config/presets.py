"""What a data preset is: the columns of a published specification, how its times are written, and what makes its rows trips."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cbdp.errors import InputError

Columns = Mapping[str, str]


@dataclass(frozen=True)
class Preset:
    """How files of one specification are read. All of it is public, and nothing of it is guessed from rows.

    `columns` are roles with the names that the specification gave them over time: the first that a file has is meant. Roles are
    dimensions, `person`, `count`, and whatever `prepare` asks for; those in `optional` may be absent. `prepare` makes a
    preparation of the columns that were found (role → column) and the declared time formats. The columns of what that makes
    are in `yields`; None stands for the column as it was.
    """

    name: str
    about: str
    follows: str  # the specification and its version
    columns: Mapping[str, tuple[str, ...]]
    optional: frozenset[str] = frozenset()
    time_format: tuple[str, ...] = ()
    prepare: Callable[[Columns, tuple[str, ...]], object | None] | None = None
    yields: Mapping[str, str | None] = field(default_factory=dict)
    local: bool = True  # times are the clock's on the wall; False: instants, which a time zone must place
    persons: bool = False  # a starting configuration protects persons
    stop_columns: Columns = field(
        default_factory=dict
    )  # what the stops' columns are called in the file that goes with it
    zone: str | None = None  # the stops' column of zones
    hint: str = ""  # what to give as --stops


@dataclass(frozen=True)
class PresetColumns:
    """A preset applied to a file: its columns, and what is done before counting."""

    columns: Columns  # role → column of what is counted
    formats: tuple[str, ...] = ()
    preparation: object | None = None  # of `cbdp.counting`: it reads rows, and only its name is known here
    raw: Columns = field(default_factory=dict)  # role → column of the file


def apply_preset(
    preset: Preset, there: Mapping[str, object], stated: Columns | None = None, formats: tuple[str, ...] = ()
) -> PresetColumns:
    """The preset for a file with the columns `there`; columns and formats that a configuration states go first."""
    settled = dict(stated or {})
    for role, names in preset.columns.items():
        fits = [n for n in names if n in there]
        if role in settled:
            continue
        if fits:
            settled[role] = fits[0]
        elif role not in preset.optional:
            listed = " or ".join(repr(n) for n in names)
            raise InputError(
                f"the preset {preset.name!r} ({preset.follows}) looks for {role} in the column {listed}, which is not there: "
                f"write columns = {{ {role} = … }} with its name in your file"
            )
    declared = formats or preset.time_format
    preparation = None if preset.prepare is None else preset.prepare(settled, declared)
    if preparation is None:
        return PresetColumns(settled, declared, None, settled)
    columns = {role: new or settled[role] for role, new in preset.yields.items() if new or role in settled}
    left = () if "time" in columns and columns["time"] not in there else declared  # made by us, in ISO 8601
    return PresetColumns(columns, left, preparation, settled)
