"""All rules, in the order in which they are explained. One module each; this is only the table."""

from sdqueue.lint.rule import Rule
from sdqueue.lint.rules import (
    after_default_target,
    after_unreached,
    bad_file,
    bad_ignore,
    conflicts_with_lane,
    dropin_cannot_reset,
    early_socket_after_late_service,
    enabled_conflict,
    fatal_cycle,
    latent_cycle,
    misplaced_key,
    no_shutdown_ordering,
    ordering_cycle,
    requirement_without_ordering,
    requires_missing,
    shell_in_exec,
    shutdown_cycle,
    stops_a_job,
    timer_starts_at_boot,
    unescaped_percent,
    wanted_by_unreached,
)

RULES: tuple[Rule, ...] = (
    ordering_cycle.RULE,
    fatal_cycle.RULE,
    shutdown_cycle.RULE,
    latent_cycle.RULE,
    after_default_target.RULE,
    after_unreached.RULE,
    requires_missing.RULE,
    requirement_without_ordering.RULE,
    enabled_conflict.RULE,
    wanted_by_unreached.RULE,
    dropin_cannot_reset.RULE,
    timer_starts_at_boot.RULE,
    no_shutdown_ordering.RULE,
    early_socket_after_late_service.RULE,
    misplaced_key.RULE,
    shell_in_exec.RULE,
    unescaped_percent.RULE,
    conflicts_with_lane.RULE,
    stops_a_job.RULE,
    bad_file.RULE,
    bad_ignore.RULE,
)

BY_NAME: dict[str, Rule] = {rule.name: rule for rule in RULES}
