"""What an ε means to somebody who has to sign it, and from which ε on a promise is hardly one.

Two of the limits are others': NIST's Cybersecurity Insights (“Differential Privacy: Future Work & Open Challenges”) reports that researchers recommend ε
around 1, and that values in the low single digits, below 5, are widely held to be a careful choice. It also says that systems in use with larger values have not
been attacked with success so far; that is experience, and no promise. The third limit, 10, is ours, and its reason is arithmetic: e^10 is above 22,000, so
that somebody who thought a trip one in a thousand likely may be 96 % sure afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cbdp.report.text import at_most

CAREFUL = 5.0
TOO_MUCH = 10.0  # an ε above which `check` warns, and which no wish for precision is met with
FEW = 0.001  # what somebody thinks beforehand, in the reason for that


@dataclass(frozen=True)
class Level:
    """A range of ε, and what to think of it."""

    upto: float
    said: str


LEVELS = (
    Level(1.0, "Strong: about 1 or less is what researchers recommend."),
    Level(CAREFUL, "Usual: below 5 counts as a careful choice (NIST), if the right unit is protected."),
    Level(TOO_MUCH, "Weak: say publicly why so much is needed."),
    Level(math.inf, "Hardly any: somebody may become all but sure. Merge periods or zones, or protect less detail."),
)  # fmt: skip


def level_of(epsilon: float) -> Level:
    """What to think of an ε.

    >>> level_of(0.5).said.split(":")[0], level_of(14.8).said.split(":")[0]
    ('Strong', 'Hardly any')
    """
    return next(level for level in LEVELS if epsilon <= level.upto)


def believed(prior: float, epsilon: float) -> float:
    """The most that somebody can believe afterwards: odds grow by a factor of e^ε at most.

    >>> round(believed(0.5, 1), 3), round(believed(0.001, 10), 2)
    (0.731, 0.96)
    """
    return 1 / (1 + (1 - prior) / prior * math.exp(-min(epsilon, 700.0)))


def reason(epsilon: float) -> str:
    """Why an ε is too large, as a sentence about somebody who hardly suspected anything.

    >>> reason(14.8)
    'somebody who thought it 0.1 % likely may become over 99.9 % sure'
    """
    sure = believed(FEW, epsilon)
    said = "over 99.9 %" if sure > 0.999 else at_most(sure)
    return f"somebody who thought it {100 * FEW:g} % likely may become {said} sure"
