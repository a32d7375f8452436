"""What the columns of a user's files seem to be, for `cbdp init`.

Of the trips only the schema is looked at (of CSV the first line), never a row. The stops are public and are read.
"""

from cbdp.app.guessing.columns import Guess, guess_columns, guess_of
from cbdp.app.guessing.header import check_header
from cbdp.app.guessing.names import count_like
from cbdp.app.guessing.stops import StopsGuess

__all__ = ["Guess", "StopsGuess", "check_header", "count_like", "guess_columns", "guess_of"]
