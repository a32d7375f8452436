"""Every error a user can meet. Each names the value that is wrong and says what to do."""

from __future__ import annotations


class CbdpError(Exception):
    """The base of all errors of this package: catch this one to catch them all."""


class InputError(CbdpError, ValueError):
    """Something handed in is wrong: a value, a name, a length, a column."""


class InfeasibleError(CbdpError):
    """The exact public values (infinite weights) contradict each other, so no answer exists."""


class SolverError(CbdpError):
    """A solver is missing, failed, or could not do what was asked."""


class CertificateError(SolverError):
    """A solver answered, but its answer is not the optimum within the tolerance asked for."""


class BudgetError(InputError):
    """A request would spend more privacy than it may. Nothing was spent."""
