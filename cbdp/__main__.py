"""`python -m cbdp` is the command `cbdp`.

Python puts the working folder first where it looks for modules, and an empty entry of PYTHONPATH (`/opt/lib:`) means that folder too. It may
be one that somebody else wrote, so it is taken away before anything is imported: `python -m cbdp` then loads what `cbdp` loads. Where the
package itself lies in the working folder (a checkout), that folder is the owner's, and stays last.
"""

import os
import sys

if __name__ == "__main__":
    here = os.getcwd()  # noqa: PTH109 - nothing else is loaded yet
    checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    sys.path[:] = [entry for entry in sys.path if entry not in ("", here)] + (
        [here] if here == checkout else []
    )

    from cbdp.app.cli import main

    sys.exit(main())
