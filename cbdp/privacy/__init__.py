"""Promises without data: units and sensitivity, noise distributions, accounting, allocation of a budget, guarantees."""

# Promises without data: units and sensitivities, noise laws, budgets, claims, the ledger.
