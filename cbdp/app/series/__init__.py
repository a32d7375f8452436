"""A series of releases: one for every period of a calendar, each made once, whatever happens to the run that makes it.

`cbdp.app.plan.periods` is the calendar and `cbdp.app.plan.slots` makes a plan of each period. Here, `pending` finds what is to be made, `running` makes it, in order,
each release by `cbdp.app.publish`; `continuity` refuses what would make it another series; `status` says what is made, due and spent;
`today` says which day it is for the agency; `command` is the command line. Which releases are made is known from the ledger alone.
"""

from cbdp.app.series.running import Ran, run_series
from cbdp.app.series.status import Status, status_of

__all__ = ["Ran", "Status", "run_series", "status_of"]
