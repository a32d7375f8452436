"""From an estimate to whole trips that add up at every level. Right of the wall."""
