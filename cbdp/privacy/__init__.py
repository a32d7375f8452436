"""Promises without data: units and sensitivity, noise distributions, accounting, allocation of a budget, guarantees."""
