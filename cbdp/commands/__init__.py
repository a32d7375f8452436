"""The command line right of the wall: how commands are declared, shown and stopped, and the commands that read what is published.

What touches trips or charges a ledger is in `cbdp.app`.
"""
