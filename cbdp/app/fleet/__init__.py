"""The commands behind `cbdp fleet`: size and run shuttles on a release, compare with the real trips, check a plug-in.

A release holds the period of a trip and not its second. A fleet is sized on one draw of seconds and, in a comparison, run on
another, so that no fleet is tuned to the very riders it is judged by. Whatever was computed from real trips says so on top.
"""

from cbdp.app.fleet.command import main

__all__ = ["main"]
