"""The page of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from building.markdown import fenced, sentence, table
from cbdp.app.cli import SECTIONS, program
from cbdp.commands.program import line_about

PAGE = "reference/command-line.md"
HEAD = """# Command line

`cbdp COMMAND --help` says the same in your terminal. What a command's [exit code](exit-codes.md) means is the same for all.

On a terminal long work shows bars; in a pipe, a file or a log these are plain lines. A wrong word gets one line with the closest right one.

## Completion { #completion }

Your shell completes commands, options, files and names of parts after one of these lines, in the file that it reads when it starts:

```bash
eval "$(cbdp completion bash)"      # ~/.bashrc
eval "$(cbdp completion zsh)"       # ~/.zshrc
cbdp completion fish | source       # ~/.config/fish/config.fish
```

This page is made from the commands."""


def context_of(command: click.Command, parent: click.Context | None) -> click.Context:
    """The context in which help is written; lines do not follow the width of a terminal."""
    return click.Context(command, info_name=command.name, parent=parent, terminal_width=100)


def inner(command: click.Command) -> dict[str, click.Command]:
    """The commands of a command: `cbdp ledger create` and the like."""
    return dict(command.commands) if isinstance(command, click.Group) else {}


def row(parameter: click.Parameter, context: click.Context) -> tuple[str, str]:
    """How an argument is written, with what it takes; and what it does, as `--help` says it."""
    record = parameter.get_help_record(context)
    assert record is not None
    written, about = record
    return ", ".join(f"`{flag}`" for flag in re.split(r" / |, (?=-)", written)), sentence(about)


def section(command: click.Command, level: int, parent: click.Context | None) -> Iterator[str]:
    """A command with its arguments, and its own commands below."""
    context = context_of(command, parent)
    path = context.command_path
    yield f"{'#' * level} `{path}` {{ #{path.replace(' ', '-')} }}"
    if command.help:
        yield sentence(line_about(command))
    commands = inner(command)
    if not commands:
        yield fenced(f"{path} {' '.join(command.collect_usage_pieces(context))}")
    rows = [row(parameter, context) for parameter in command.params if parameter.name != "version"]
    if rows:
        yield table(["argument", "what it does"], rows)
    for each in commands.values():
        yield from section(each, level + 1, context)


def page() -> str:
    """The page: what there is, by what a user wants to do, then each command."""
    parts = [HEAD]
    for title, names in SECTIONS.items():
        rows = [(f"[`cbdp {n}`](#cbdp-{n})", sentence(line_about(program.commands[n]))) for n in names]
        parts += [f"## {title}", table(["command", "what it does"], rows)]
        for name in names:
            parts += section(program.commands[name], 3, context_of(program, None))
    return "\n\n".join(parts) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    yield PAGE, page()
