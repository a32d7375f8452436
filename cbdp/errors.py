"""Every error a user can meet. Each names the value that is wrong and says what to do."""

from __future__ import annotations

from cbdp.text import message


class CbdpError(Exception):
    """The base of all errors of this package: catch this one to catch them all.

    >>> import cbdp
    >>> try:
    ...     cbdp.load("nowhere")
    ... except cbdp.CbdpError as error:
    ...     print(type(error).__name__)
    InputError

    Its text shows names as data and hides passwords, wherever it was put together (`cbdp.text`).
    """

    def __init__(self, *parts: object) -> None:
        super().__init__(*(message(part) if isinstance(part, str) else part for part in parts))


class InputError(CbdpError, ValueError):
    """Something handed in is wrong: a value, a name, a length, a column.

    >>> import cbdp
    >>> try:
    ...     cbdp.Trip("swap")
    ... except cbdp.InputError as error:
    ...     print(error)
    unknown neighbours 'swap': use 'add-remove' or 'replace'
    >>> issubclass(cbdp.InputError, ValueError)
    True
    """


class InfeasibleError(CbdpError):
    """The exact public values (infinite weights) contradict each other, so no answer exists.

    >>> from cbdp.errors import CbdpError, InfeasibleError
    >>> issubclass(InfeasibleError, CbdpError)
    True
    """


class SolverError(CbdpError):
    """A solver is missing, failed, or could not do what was asked.

    >>> import cbdp
    >>> issubclass(cbdp.SolverError, cbdp.CbdpError), issubclass(cbdp.errors.CertificateError, cbdp.SolverError)
    (True, True)
    """


class CertificateError(SolverError):
    """A solver answered, but its answer is not the optimum within the tolerance asked for.

    >>> from cbdp.errors import CertificateError, SolverError
    >>> issubclass(CertificateError, SolverError)
    True
    """


class BudgetError(InputError):
    """A request would spend more privacy than it may. Nothing was spent.

    >>> import tempfile
    >>> import cbdp
    >>> with tempfile.TemporaryDirectory() as folder, cbdp.Ledger.open(f"{folder}/ledger", cap=1, dataset="city", create=True) as ledger:
    ...     try:
    ...         ledger.reserve("all of it", 2)
    ...     except cbdp.BudgetError as error:
    ...         print(error)
    a charge of 2 does not fit: 1 of the cap 1 is left for data set 'city'; ask for less (a charge rounds up to 9 decimals)
    """
