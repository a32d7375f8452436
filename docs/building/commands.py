"""The page of the command line, from the parsers themselves."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from unittest import mock

from building.markdown import fenced, sentence, table
from cbdp.app.cli import COMMANDS

PAGE = "reference/command-line.md"
HEAD = """# Command line

`cbdp COMMAND --help` says the same in your terminal. What a command's [exit code](exit-codes.md) means is the same for all.

This page is made from the parsers of the commands."""


class _FoundError(Exception):
    """Carries a command's parser out of the command, before the command does anything."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command: the first one that the command asks to read its words."""

    def stop(self: argparse.ArgumentParser, *_: object, **__: object) -> argparse.Namespace:
        raise _FoundError(self)

    module, _, function = COMMANDS[name][0].partition(":")
    with mock.patch.object(argparse.ArgumentParser, "parse_args", stop):
        try:
            getattr(import_module(module), function)([])
        except _FoundError as found:
            return found.parser
    raise LookupError(f"cbdp {name} reads no words")


def inner(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a command: `cbdp ledger create` and the like."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What may be given, but for help and further commands."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return [a for a in parser._actions if not isinstance(a, hidden) and a.help != argparse.SUPPRESS]


def written(action: argparse.Action) -> str:
    """How an argument is written, with what it takes."""
    value = (
        ""
        if action.nargs == 0
        else action.metavar or (action.dest if not action.option_strings else action.dest.upper())
    )
    shown = " ".join(value) if isinstance(value, tuple) else value
    if action.choices is not None and action.metavar is None:
        shown = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{shown}`"
    return ", ".join(f"`{flag} {shown}`".replace(" `", "`") for flag in action.option_strings)


def told(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """What an argument does, as `--help` tells it."""
    formatter = parser._get_formatter()
    return sentence(formatter._expand_help(action)) if action.help else ""


def section(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """A command with its arguments, and its own commands below."""
    anchor = parser.prog.replace(" ", "-")
    yield f"{'#' * level} `{parser.prog}` {{ #{anchor} }}"
    if parser.description:
        yield sentence(parser.description)
    commands = inner(parser)
    if not commands:
        yield fenced(usage(parser))
    rows = [(written(a), told(a, parser)) for a in actions(parser)]
    if rows:
        yield table(["argument", "what it does"], rows)
    if parser.epilog:
        yield parser.epilog
    for found in commands.values():
        yield from section(found, level + 1)


def usage(parser: argparse.ArgumentParser) -> str:
    """How a command is written; lines do not follow the width of a terminal."""
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        first, *more = parser.format_usage().removeprefix("usage: ").strip().splitlines()
    return "\n".join([first, *(f"    {line.strip()}" for line in more)])


def page(names: Sequence[str] = tuple(COMMANDS)) -> str:
    """The page."""
    overview = table(
        ["command", "what it does"], [(f"[`cbdp {n}`](#cbdp-{n})", COMMANDS[n][1]) for n in names]
    )
    made = [HEAD, overview]
    for name in names:
        made += section(parser_of(name), 2)
    return "\n\n".join(made) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    yield PAGE, page()
