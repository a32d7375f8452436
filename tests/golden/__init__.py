"""Golden configurations: what the same seeds publish, byte by byte, before and after a change of the code.

Only public ways in are used: the command line as the console script has it (`golden.ways`), `import cbdp`, and `noise_of` of
`tests/repeatable.py`; so modules may be renamed and merged freely. From the top of a checkout:

    PYTHONPATH=.:tests python -m golden write FOLDER      # every configuration, into FOLDER
    PYTHONPATH=.:tests python -m golden compare A B       # exit 1 and every difference, where there are any
    PYTHONPATH=.:tests python -m golden expect            # writes expected.json, which the suite compares with

Two folders that are compared were written on one machine. `expected.json` is for all machines: whole numbers and words as hashes,
real numbers as sums that are compared with a tolerance.
"""
