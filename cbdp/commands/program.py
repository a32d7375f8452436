"""The command line: how commands are declared, what the program prints to, how it ends, and the files that commands write.

Exit code 0: done; 1: a check or an audit failed, or a release after its charge; 2: bad usage or input, nothing was spent;
130: interrupted. No file is overwritten, and nothing internal lands in a release or under an innocent name.
"""

from __future__ import annotations

import io
import os
import select
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import click
from click.shell_completion import CompletionItem, shell_complete

from cbdp.errors import CbdpError, InputError
from cbdp.parts import did_you_mean
from cbdp.progress import on_terminal
from cbdp.text import message, shown
from cbdp.untrusted import read_json

REFUSED, INTERRUPTED = 2, 130  # 130 is what shells expect after Ctrl-C
FIRST_NOTICE_SECONDS, NOTICE_SECONDS = (
    5.0,
    60.0,
)  # seconds until a silent command says that it works, and until it says so again
COMMANDS_WITH_PROGRESS = ("demo", "release", "series")  # commands that tell all along what they do
BROKEN_PIPE_EXIT_CODE = 141  # and this where the reader of a pipe has gone
HELP_WIDTH = 110  # characters of a line of help, where the terminal has so many
COMPLETION_VARIABLE = "_CBDP_COMPLETE"  # in which a shell asks for completions


def run(program: click.Group, argv: Sequence[str] | None = None) -> int:
    """Run a command of the program; our own errors become one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without an ε shows a question mark
    if argv is None:
        sys.excepthook = _report_fault
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            return shell_complete(program, {}, "cbdp", COMPLETION_VARIABLE, instruction)
    with (
        on_terminal(sys.stderr),
        redirect_stdout(_Shown(sys.stdout)),
        redirect_stderr(_Shown(sys.stderr)),
    ):
        return _main(program, argv)


def _report_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The traceback of a fault of this program, which may end in a report to others: without passwords too."""
    sys.stderr.write(shown("".join(traceback.format_exception(kind, error, trace))))


class _Shown(io.TextIOBase):
    """Where commands print to: whatever they write passes `cbdp.text`, so no name commands the terminal and no password is shown."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, text: str) -> int:
        self.out.write("\n".join(map(shown, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self.out.flush()

    def isatty(self) -> bool:
        return self.out.isatty()

    def fileno(self) -> int:
        return self.out.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.out.encoding


def _main(program: click.Group, argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    done = threading.Event()
    if argv is None and words and words[0] in program.commands and not _tells(words[0]):
        threading.Thread(target=_patience, args=(words[0], done), daemon=True).start()
    try:
        return _run(program, words)
    finally:
        done.set()
        if argv is not None:
            _hear_again()


def _tells(command: str) -> bool:
    """Whether a command says by itself what it does."""
    return command in COMMANDS_WITH_PROGRESS or (command == "ask" and sys.stderr.isatty())


def _patience(
    command: str, done: threading.Event, wait: float = FIRST_NOTICE_SECONDS, again: float = NOTICE_SECONDS
) -> None:
    """Say that a command is still at work, where it takes long and says nothing of it: to whoever waits, or reads a log."""
    passed = wait
    while not done.wait(passed if passed == wait else again):
        with suppress(OSError, ValueError):
            print(f"cbdp {command}: still working, {passed:.0f} seconds so far", file=sys.stderr, flush=True)
        passed += again


def _hear_again() -> None:
    """A caller that goes on wants its signals back; the program itself is about to end."""
    if "cbdp.commands.stopping" in sys.modules:
        sys.modules["cbdp.commands.stopping"].hear_again()


def _run(program: click.Group, argv: list[str]) -> int:
    # not by `program.main`, which turns an interruption into an `Abort` without its message, and writes to a pipe that is gone
    try:
        with program.make_context("cbdp", argv) as context:
            code = int(program.invoke(context))
        sys.stdout.flush()  # here, where a reader who has gone is understood
    except click.exceptions.Exit as end:  # after --help and --version
        return end.exit_code
    except click.UsageError as error:
        return _stopped(_usage_message(error), REFUSED)
    except CbdpError as error:
        return _stopped(str(error), getattr(error, "exit_code", REFUSED))
    except KeyboardInterrupt as stopped:
        return _stopped(str(stopped) or "interrupted", INTERRUPTED)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _unheard():
            return BROKEN_PIPE_EXIT_CODE
        return _stopped(f"{error.filename or 'a file'}: {error.strerror or error}", REFUSED)
    return code


def _usage_message(error: click.UsageError) -> str:
    """What is wrong, in one line, and where to read how it is right."""
    name = "cbdp" if error.ctx is None else error.ctx.command_path
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        options = [o for p in error.ctx.command.params for o in p.opts if o.startswith("--")]
        text = f"there is no option '{error.option_name}': {did_you_mean(error.option_name, [*options, '--help'])}"
    else:
        text = error.format_message()
    return f"{text[:1].lower()}{text[1:].rstrip('.')} (see {name} --help)"


def _unheard() -> bool:
    """Whether nobody reads the output any more, as after `| head`; then nothing is said of it."""
    stdout = sys.stdout.out if isinstance(sys.stdout, _Shown) else sys.stdout
    if not isinstance(stdout, io.TextIOWrapper) or not hasattr(select, "poll"):
        return False
    out, watched = stdout.fileno(), select.poll()
    watched.register(out, 0)
    if not any(event & select.POLLERR for _, event in watched.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), out)  # what is left is not written at the end
    return True


def _stopped(why: str, code: int) -> int:
    print(f"cbdp: {' '.join(message(why).split())}", file=sys.stderr)
    return code


# How commands are declared: by click, whose arguments have no line of help before its version 8.3

About = str | Callable[[], str]  # worked out only where help is asked for: what it lists may be slow to load


class ProgramArgument(click.Argument):
    """An argument with a line about it."""

    def __init__(self, declarations: Sequence[str], *, about: About, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.about = about

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.get_usage_pieces(ctx)[0], self.about if isinstance(self.about, str) else self.about()


class ProgramOption(click.Option):
    def __init__(self, declarations: Sequence[str], *, about: About, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.about = about

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self.about if isinstance(self.about, str) else self.about()
        return super().get_help_record(ctx)


class ProgramCommand(click.Command):
    """A command whose help lists arguments too."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """They stand with the options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, kind in (("Arguments", ProgramArgument), ("Options", click.Option)):
            records = [
                record
                for p in self.get_params(ctx)
                if isinstance(p, kind) and (record := p.get_help_record(ctx))
            ]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class ProgramGroup(click.Group):
    """Commands that help lists under a heading for each thing that a user wants to do."""

    command_class = ProgramCommand
    group_class = type

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Sequence[str]] | None = None,
        default: str | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **{"no_args_is_help": False, **attributes})
        self.sections, self.default = sections, default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Whatever names no command is given to the default one."""
        if self.default is not None and args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order in which they are used."""
        return (
            list(self.commands)
            if self.sections is None
            else [name for names in self.sections.values() for name in names]
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {args[0]!r}: {did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, names in (self.sections or {"Commands": tuple(self.commands)}).items():
            with formatter.section(title):
                formatter.write_dl([(name, line_about(self.commands[name])) for name in names])


def line_about(command: click.Command) -> str:
    """The first line of a command's help."""
    return (command.help or "").partition("\n")[0].rstrip(".")


class CompletedText(click.types.StringParamType):
    """A text as it is written, which a shell completes: whoever reads it says what is wrong with it."""

    def __init__(self, name: str, completions: Callable[[str], list[CompletionItem]]) -> None:
        self.name, self.completions = name, completions

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        return self.completions(incomplete)


FILE = CompletedText("file", lambda incomplete: [CompletionItem(incomplete, type="file")])  # or a URL
FOLDER = CompletedText("folder", lambda incomplete: [CompletionItem(incomplete, type="dir")])


def name_of(names: Callable[[], Sequence[str]]) -> CompletedText:
    """A name out of a table, which is loaded only where a shell asks for completions."""
    return CompletedText(
        "name", lambda incomplete: [CompletionItem(n) for n in names() if n.startswith(incomplete)]
    )


def argument(name: str, about: About, **attributes: Any) -> Callable[[Any], Any]:
    return click.argument(name, cls=ProgramArgument, about=about, **attributes)


def option(*names: str, about: About, **attributes: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=ProgramOption, about=about, **attributes)


def command(name: str) -> Callable[[Callable[..., int]], click.Command]:
    """A command that some group takes in."""
    return click.command(name, cls=ProgramCommand)


def group(name: str, **attributes: Any) -> Callable[[Callable[..., None]], click.Group]:
    """A group of commands that the program takes in."""
    return click.group(name, cls=ProgramGroup, **attributes)


def say(text: str) -> None:
    """A line for who waits, or reads a log."""
    with suppress(OSError, ValueError):  # a terminal that is gone must not end a release that was paid for
        print(text, file=sys.stderr, flush=True)


release_argument = argument("release", "folder of a release", type=FOLDER)


# Files that a command writes


MARK = "internal"  # in the name of every file that was made with real trips


def check_new(path: Path, *, internal: bool) -> None:
    """Refuse a place before the work begins: one that is taken or has no folder.

    What was made with real trips is `internal`: it must bear that word in its name, and may lie in no release.
    """
    folder = path.absolute().parent
    if os.path.lexists(path):
        raise InputError(_taken(path))
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}: create it first")
    if internal:
        _check_internal(path)


def check_new_beside(path: Path, release: Path, *, internal: bool) -> None:
    """As `check_new`, and not where a release's public files lie."""
    folder = path.absolute().parent.resolve()  # `..` is a way out of the release, not a place in it
    if release.is_dir() and release.resolve() in [folder, *folder.parents]:
        raise InputError(
            f"{str(path)!r} lies in the release, which is complete as it is: choose another place"
        )
    check_new(path, internal=internal)


def write_new(path: Path, text: str, *, internal: bool = False) -> None:
    """Write a file that does not exist yet; `internal` is checked once more, for the work before may have taken long."""
    if internal:
        _check_internal(path)
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(_taken(path)) from None
    except OSError as wrong:
        raise InputError(
            f"{str(path)!r} cannot be written ({wrong.strerror}): choose another place"
        ) from None


def release_around(path: Path) -> Path | None:
    """The release folder that a path lies in, at any depth, as it is written or once links are followed."""
    folder = path.absolute().parent
    for start in (Path(os.path.normpath(folder)), folder.resolve()):
        for place in (start, *start.parents):
            if _is_release(place):
                return place
    return None


def _is_release(folder: Path) -> bool:
    """Whether a folder holds a manifest of ours. One that cannot be read may be ours."""
    from cbdp.release.files import MANIFEST
    from cbdp.release.manifest import FORMAT

    try:
        document = read_json(folder / MANIFEST)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return isinstance(document, dict) and document.get("format") == FORMAT


def _check_internal(path: Path) -> None:
    around = release_around(path)
    if around is not None:
        raise InputError(
            f"{str(path)!r} lies in the release {str(around)!r}, but would show private data: choose a place outside"
        )
    if MARK not in path.name.lower():
        proposed = path.with_name(f"{path.stem}-{MARK}{path.suffix}")
        raise InputError(
            f"{str(path)!r} would show private data, so its name must contain {MARK!r}: use {str(proposed)!r}"
        )


def _taken(path: Path) -> str:
    return f"{str(path)!r} exists already and is not overwritten: choose another place"
