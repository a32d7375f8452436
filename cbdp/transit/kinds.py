"""The four kinds of plug-ins that a designer may bring: network designer, fleet sizer, dispatcher, mode choice.

A plug-in is any object with the method of its kind; no base class is needed. As a part it also has a `name` and a line
`about` it, both texts. Network designers, fleet sizers and dispatchers may be external programs instead (`Command`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cbdp.errors import InputError
from cbdp.transit.command import Command

if TYPE_CHECKING:  # the simulator is compiled: nobody waits for it who only asks which parts there are
    from cbdp.transit.city import City
    from cbdp.transit.demand import Legs
    from cbdp.transit.design import Demand, Design
    from cbdp.transit.dispatching import Decision, State
    from cbdp.transit.fleet import Sizing
    from cbdp.transit.modes import Itineraries
    from cbdp.transit.simulator import Fleet, Operations


@runtime_checkable
class NetworkDesigner(Protocol):
    """Chooses which arcs between hubs get buses: a `Design`, or pairs of hubs (as stops).

    >>> from cbdp.transit import DESIGNERS
    >>> list(DESIGNERS.known())
    ['path']
    """

    def design(self, city: City, demand: Demand) -> Design | Sequence[tuple[int, int]]: ...


@runtime_checkable
class FleetSizer(Protocol):
    """Chooses the number of shuttles of every zone: a `Sizing`, a `Fleet`, or numbers in the order of the zones.

    >>> from cbdp.transit import SIZERS
    >>> list(SIZERS.known())
    ['search']
    """

    def size(self, city: City, legs: Legs, operations: Operations) -> Sizing | Fleet | Sequence[int]: ...


@runtime_checkable
class Dispatcher(Protocol):
    """Decides which shuttle serves a leg that is released now, and how; None refuses the leg.

    >>> from cbdp.transit import DISPATCHERS
    >>> list(DISPATCHERS.known())
    ['cheapest-insertion']
    """

    def dispatch(self, state: State, leg: int) -> Decision | None: ...


@runtime_checkable
class ModeChoice(Protocol):
    """Chooses mode and itinerary of every ⟨origin, destination, time⟩. It is given the city and never any demand.

    >>> from cbdp.transit import MODE_CHOICES
    >>> list(MODE_CHOICES.known())
    ['rule']
    """

    def choose(self, city: City) -> Itineraries: ...


def having(method: str, *, external: bool = True) -> Callable[[Any], Any]:
    """What `Parts.fits` is for plug-ins: an object with the method, a class that needs no settings, or a `Command`."""

    def fits(given: Any) -> Any:
        plugin = _made(given) if isinstance(given, type) else given
        if isinstance(plugin, Command):
            if not external:
                raise InputError(
                    "a mode choice cannot be an external command, for it is a function of the city: give a Python object"
                )
        elif not callable(getattr(plugin, method, None)):
            raise InputError(f"{plugin!r} has no method {method!r}: write one, or choose another plug-in")
        return plugin

    return fits


def _made(kind: type) -> Any:
    try:
        return kind()
    except TypeError as failure:
        raise InputError(
            f"{kind.__name__} needs settings ({failure}): name an object instead of the class"
        ) from None
