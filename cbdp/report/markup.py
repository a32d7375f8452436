"""HTML and SVG by function calls: whatever is not markup already is escaped, so no label can become code."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from string import Template
from typing import Any

from cbdp.text import html_text, shown_data

REPORT = "cbdp.report"
INTERNAL_WARNING = (
    "INTERNAL – reveals private data – do not publish"  # on top and at the end of whatever saw the real trips
)
SCRIPT_INCLUDE = re.compile(
    r"^  /\* (\w+\.js) \*/\n", re.MULTILINE
)  # where a script has another: its package's own, or the report's
NONBREAKING_PERCENT = "\u00a0%"  # no line ends before the sign
VOID_ELEMENTS = frozenset({"br", "input"})
SVG_SHAPES = frozenset({"line", "rect", "circle", "path"})
SCRIPT_ESCAPES: dict[str, str | int | None] = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


class Html(str):
    """Text that is markup, and safe."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """An element. Attributes are written with `_` for `-`; `class_` is class; None and False are left out.

    >>> tag("p", "a < b", tag("br"), class_="note")
    '<p class="note">a &lt; b<br></p>'
    """
    named = ((k.rstrip("_").replace("_", "-"), v) for k, v in attributes.items())
    written = "".join(
        f" {k}" if v is True else f' {k}="{html_text(str(v))}"'
        for k, v in named
        if v is not None and v is not False
    )
    if not children and name in VOID_ELEMENTS | SVG_SHAPES:
        return Html(f"<{name}{written}>" if name in VOID_ELEMENTS else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Any) -> Html:
    """Markup and text one after the other; lists are opened, None is nothing.

    >>> join("<", tag("b", 1), [2, None])
    '&lt;<b>1</b>2'
    """
    pieces: list[str] = []
    for child in children:
        if isinstance(child, Html):
            pieces.append(child)
        elif isinstance(child, list | tuple):
            pieces.append(join(*child))
        elif child is not None:
            pieces.append(html_text(str(child)).replace(" %", NONBREAKING_PERCENT))
    return Html("".join(pieces))


def internal_banner() -> Html:
    """The warning on top of a page that was made with private data."""
    return tag("div", tag("p", INTERNAL_WARNING), class_="internal", role="alert")


def table(head: list[Any], rows: list[list[Any]], **attributes: Any) -> Html:
    """A table whose cells know their column's name, so that narrow screens can show it beside each."""
    names = [str(h) for h in head]
    top = tag("thead", tag("tr", [tag("th", h, scope="col") for h in head]))
    body = [
        tag("tr", tag("th", row[0], scope="row"), [tag("td", c, data_name=n) for n, c in zip(names[1:], row[1:], strict=True)])
        for row in rows
    ]  # fmt: skip
    return tag("table", top, tag("tbody", body), **attributes)


def page(title: str, body: Html, data: Any, package: str = REPORT, name: str = "page") -> str:
    """The whole page: style, script and data are inside it, and its policy forbids every request.

    The script is `package`'s own, and its style is added to the report's.
    """
    style = "".join(
        _file(*style) for style in dict.fromkeys(((REPORT, "page.css"), (package, f"{name}.css")))
    )
    script = SCRIPT_INCLUDE.sub(
        lambda match: _included_script(package, match[1]), _file(package, f"{name}.js")
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    shell = Template(_file(REPORT, "page.html"))
    return shell.substitute(
        title=html_text(title),
        policy=html_text(policy),
        style=style,
        script=script,
        body=body,
        data=embedded(data),
    )


def embedded(data: Any) -> str:
    r"""JSON that can stand inside a script element: the same bytes for the same data.

    >>> print(embedded({"stop": "</script>"}))
    {"stop":"\u003c/script\u003e"}
    """
    text = json.dumps(shown_data(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(str.maketrans(SCRIPT_ESCAPES))


def _included_script(package: str, name: str) -> str:
    """A script that stands in another: of the package, or what all pages share."""
    return _file(package if files(package).joinpath(name).is_file() else REPORT, name)


def _file(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
