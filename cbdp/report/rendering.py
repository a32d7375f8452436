"""Pages from Jinja2 templates: whatever a template prints is text, unless a template made it, so no label can become code.

A page is one file that opens offline. Its templates (`*.html.jinja`) hold the markup; they stand beside the module that knows what they show.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup

from cbdp.numbers import count_text
from cbdp.text import INTERNAL_WARNING, html_text, shown_data

SCRIPT_INCLUDE = re.compile(r"^  /\* ([\w/]+\.js) \*/\n", re.MULTILINE)  # where a script has another
NONBREAKING_PERCENT = "\u00a0%"  # no line ends before the sign
SCRIPT_ESCAPES: dict[str, str | int | None] = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


@dataclass(frozen=True)
class Tile:
    """A number at the head of a page: what it is called, and what is to be known about it."""

    head: str
    value: str
    about: str
    id: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of texts; the first cell of a row is its name."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Pill:
    """A short verdict in a colour, with a sign for those who see no colours."""

    name: str
    kind: str
    sign: str | None = None


def render(
    template: str,
    *,
    style: Sequence[str] = (),
    script: str = "report/page.js",
    data: object = None,
    **view: object,
) -> str:
    """The whole page: style, script and data are inside it, and its policy forbids every request.

    Files are named from the package on, like `report/page.css`; `style` is added to the report's. `data` is what the script draws.
    """
    css = "".join(map(_file, ("report/page.css", *style)))
    code = SCRIPT_INCLUDE.sub(lambda match: _file(match[1]), _file(script))
    policy = (
        f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(code)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _environment().get_template(template).render(
        policy=policy, style=_markup(css), script=_markup(code), data=_markup(embedded(data)), **view
    )  # fmt: skip


def embedded(data: object) -> str:
    r"""JSON that can stand inside a script element: the same bytes for the same data.

    >>> print(embedded({"stop": "</script>"}))
    {"stop":"\u003c/script\u003e"}
    """
    text = json.dumps(shown_data(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(str.maketrans(SCRIPT_ESCAPES))


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = count_text
    environment.globals["INTERNAL_WARNING"] = INTERNAL_WARNING
    return environment


def _printed(value: object) -> Markup:
    """What an expression prints: text as it is shown to anybody (`cbdp.text.html_text`); None is nothing."""
    if isinstance(value, Markup):
        return value
    return _markup("" if value is None else html_text(str(value)).replace(" %", NONBREAKING_PERCENT))


def _markup(text: str) -> Markup:
    """Text that is markup: escaped before, or our own style and script."""
    return Markup(text)  # noqa: S704


@cache
def _file(name: str) -> str:
    return files("cbdp").joinpath(*name.split("/")).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
