"""Promises without data: units and sensitivities, noise laws, budgets, claims, the ledger."""
