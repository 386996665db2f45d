"""All rules, in the order in which they are explained. One module each; this is only the table."""

from sdqueue.lint.rule import Rule
from sdqueue.lint.rules import (
    fatal_cycle,
    latent_cycle,
    ordering_cycle,
    shutdown_cycle,
)

RULES: tuple[Rule, ...] = (
    ordering_cycle.RULE,
    fatal_cycle.RULE,
    shutdown_cycle.RULE,
    latent_cycle.RULE,
)

BY_NAME: dict[str, Rule] = {rule.name: rule for rule in RULES}
