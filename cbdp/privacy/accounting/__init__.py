"""What privacy loss is counted in, and how one account is stated in the terms of another: pure ε, ρ (zCDP), and (ε, δ)."""

from cbdp.privacy.accounting.conversion import curve, delta_of, epsilon_of, in_words, rho_for, to_rho

__all__ = ["curve", "delta_of", "epsilon_of", "in_words", "rho_for", "to_rho"]
