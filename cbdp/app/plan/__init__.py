"""What a configuration means: the universe, the features, the mechanism, the account. Public inputs only are read.

Of the trips only the schema is looked at, never a row. Nothing is written and nothing is spent.
"""

from cbdp.app.plan.account import Account
from cbdp.app.plan.planned import Plan, plan

__all__ = ["Account", "Plan", "plan"]
