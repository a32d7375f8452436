"""`cbdp init`: a commented configuration for the user's files, to be read and edited. The trips are opened for their schema, and no row of them is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cbdp.app.presets import PRESETS, Preset, apply_preset
from cbdp.commands.program import write_new
from cbdp.config.guessing import Guess, StopsGuess, check_header, guess_roles, guess_stops
from cbdp.counting import Clock, schema_of
from cbdp.errors import InputError
from cbdp.forecast.starter import Starter, render, summary_lines


def guess(trips: Sequence[str], stops: str | Path | None = None) -> Guess:
    """What the columns of the trips (by their names and types) and of the stops (by their values too) seem to be."""
    return guess_roles(schema_of(trips[0] if len(trips) == 1 else list(trips)), stops)


def write(
    path: str | Path,
    trips: str | Path | Sequence[str | Path],
    stops: str | Path | None = None,
    *,
    preset: str | None = None,
    time_format: Sequence[str] = (),
    count_taps: bool = False,
) -> Path:
    """Write a configuration for these files; one that is there is left alone."""
    file = Path(path)
    folder = file.absolute().parent
    text = starter(trips, stops, folder, preset=preset, time_format=time_format, count_taps=count_taps)
    write_new(file, text)
    return file


def starter(
    trips: str | Path | Sequence[str | Path],
    stops: str | Path | None = None,
    folder: Path | None = None,
    *,
    preset: str | None = None,
    time_format: Sequence[str] = (),
    count_taps: bool = False,
) -> str:
    """The text of a configuration in this folder; with `count_taps`, taps of cards are counted by stop and not linked."""
    listed = [trips] if isinstance(trips, str | Path) else list(trips)
    if not listed:
        raise InputError("there are no trips: name at least one file")
    if stops is not None and str(stops) in map(str, listed):
        raise InputError(
            f"the stops and the trips are the same file {str(stops)!r}: give a public list of all stops, used or not"
        )
    Clock(format=tuple(time_format) or None)
    chosen_preset = None if preset is None else PRESETS.get(preset)
    sources = [str(t) for t in listed]
    guessed = guess(sources, stops) if chosen_preset is None else _of_preset(chosen_preset, sources, stops)
    if count_taps:
        guessed = _alone(guessed, preset)
    return render(
        Starter(
            tuple(_relative(t, folder) for t in listed),
            None if stops is None else _relative(stops, folder),
            replace(guessed, formats=tuple(time_format) or guessed.formats),
            PRESETS.get("taps") if chosen_preset is None and guessed.linked else chosen_preset,
        )
    )


def _alone(guessed: Guess, preset: str | None) -> Guess:
    """Taps, each counted on its own."""
    if preset is not None:
        raise InputError(
            f"--count-taps counts taps, and the preset {preset!r} makes trips: leave one of them out"
        )
    if not guessed.linked and not guessed.places:
        raise InputError(
            "--count-taps counts taps by stop, and no column of their stop and time was found: leave it out"
        )
    return replace(guessed, alone=True)


def _of_preset(preset: Preset, trips: Sequence[str], stops: str | Path | None) -> Guess:
    """What a preset knows; nothing is guessed but the stops' columns."""
    source = schema_of(trips[0] if len(trips) == 1 else list(trips))
    public = StopsGuess() if stops is None else guess_stops(Path(stops), preset.stop_columns, preset.zone)
    check_header(source, public.ids_and_names)
    columns = apply_preset(preset, source.kinds).raw
    return Guess(columns, stops=public, zoned_times=not preset.local)


def _relative(path: str | Path, folder: Path | None) -> str:
    """A path as the configuration's folder sees it; one that was given in full stays so, and a URL as well."""
    if "://" in str(path) or folder is None or Path(path).is_absolute():
        return str(path)
    return Path(os.path.relpath(path, folder)).as_posix()


__all__ = ["starter", "summary_lines", "write"]
