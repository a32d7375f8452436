"""`python -m cbdp` is the command `cbdp`."""

import sys

from cbdp.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
