"""From a plan to a published release, once: what `cbdp release` does.

The order makes it safe to be killed at any instant. ε is reserved, durably, before any noise is drawn. The release is
written beside its place and renamed into it as a whole. Then the ledger notes its manifest's hash. So a run that dies

- before the reservation has spent and left nothing;
- after it has spent its charge; what it drew was never published, and the next run pays for noise of its own;
- after the renaming has published; the next run finds the release by the charge in its manifest and notes it.

Why the second run pays again: see docs/explanation/threat-model.md. `order` is this order, `opening` finds or creates the ledger, `earlier`
looks for what was made before, `making` does the work, `run` is what all of them share.
"""

from cbdp.app.publish.order import LostChargeError, PublishedRelease, publish
from cbdp.app.publish.run import Say

__all__ = ["LostChargeError", "PublishedRelease", "Say", "publish"]
