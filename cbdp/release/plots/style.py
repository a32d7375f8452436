"""How plots look: colours that everybody can tell apart, a title from the publisher's words, and a foot that says what is promised."""

from __future__ import annotations

import textwrap
from typing import Any

from cbdp.errors import InputError
from cbdp.release.counted import counted
from cbdp.release.published import Published
from cbdp.release.words import bounded, guarantee, title_of, where_and_when

# Okabe and Ito's palette, which people with any kind of colour vision can tell apart; yellow is left out, it is too pale for lines
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BAR = "#56B4E9"  # of the same palette: light enough for the thin dark lines on it
INK, MUTED, LINE = "#1b2430", "#566274", "#d5dbe3"
LETTERS = 14  # of the foot, in an inch
OWN = "cbdp"  # marks axes that were made here


def pyplot() -> Any:
    """Matplotlib, which is loaded when something is drawn."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise InputError('plots need matplotlib: pip install "cbdp[plot]"') from None
    return plt


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes to draw on: those given, or new ones, which have a picture of their own."""
    if ax is not None:
        return ax
    _, made = pyplot().subplots(figsize=size, layout="constrained")
    made.set_gid(OWN)
    return made


def clean(ax: Any, grid: str) -> None:
    """No box around it, and lines to read the numbers of one axis off."""
    for side in ("top", "right", "left" if grid == "y" else "bottom"):
        ax.spines[side].set_visible(False)
    ax.grid(axis=grid, color=LINE, linewidth=0.8)
    ax.set_axisbelow(True)
    (ax.xaxis if grid == "x" else ax.yaxis).set_major_formatter("{x:,.0f}")
    ax.tick_params(colors=MUTED, length=0)


def head_and_foot(ax: Any, published: Published, what: str, note: str) -> None:
    """The title on top with what is shown; at the foot how sure it is and how it is protected.

    On axes that somebody else has laid out, all of it hangs on the axes, and takes no room from others.
    """
    release = published.release
    promise, only = guarantee(release), bounded(release.promise.unit, counted(release.features.universe))
    said = [note, f"{promise[0].upper()}{promise[1:]}.", f"{only[0].upper()}{only[1:]}." if only else ""]
    whole = ax.figure
    foot = "\n".join(textwrap.wrap(" ".join(filter(None, said)), int(LETTERS * whole.get_figwidth())))
    head = "\n".join(filter(None, [title_of(release), where_and_when(release)]))
    if ax.get_gid() == OWN:
        whole.suptitle(head, x=0.01, ha="left", color=INK, fontweight="bold", fontsize=12)
        whole.supxlabel(foot, x=0.01, ha="left", color=MUTED, fontsize=8.5)
        ax.set_title(what, loc="left", color=MUTED, fontsize=10)
        return
    ax.set_title(f"{head}\n{what}", loc="left", color=INK, fontsize=10)
    note_at = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "top", "fontsize": 7.5}
    ax.annotate(foot, (0, 0), (0, -36), color=MUTED, **note_at).set_in_layout(False)


def sureness(published: Published, drawn: bool, exact: bool, marks: str) -> str:
    """What the thin lines are."""
    sure = f"{100 * published.confidence:g} %"
    if not drawn:
        return "No intervals were published for these numbers."
    if exact:
        return f"{marks}: {sure} intervals of the true counts."
    return f"{marks}: the {sure} intervals of a more detailed table, added up, so wider than necessary."
