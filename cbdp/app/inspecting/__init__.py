"""`cbdp inspect`: how trips are read, what of them counts, and why the rest does not. Private: for the curator's eyes only.

`reading` is what an inspection needs of a configuration, `causes` finds likely mistakes with their cures (each kind of mistake has
a module), `words` puts all into sections, `command` prints or writes them, and `judging` stops a release before its charge.
"""

from cbdp.app.inspecting.cause import Cause
from cbdp.app.inspecting.causes import causes_of
from cbdp.app.inspecting.reading import TripReading, look, reading_of

__all__ = ["Cause", "TripReading", "causes_of", "look", "reading_of"]
