"""`python -m cbdp` is the command `cbdp`.

Python puts the working folder first where it looks for modules. That folder may be one that somebody else wrote, so it is taken away
before anything is imported: `python -m cbdp` then loads what `cbdp` loads.
"""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - nothing else is loaded yet
        del sys.path[0]

    from cbdp.app.cli import main

    sys.exit(main())
