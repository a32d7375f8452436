"""What `cbdp init` writes: a commented configuration for the user's files, to be read and edited. No row of the trips is read."""

from cbdp.app.init.opening import starter, write
from cbdp.app.init.telling import told

__all__ = ["starter", "told", "write"]
