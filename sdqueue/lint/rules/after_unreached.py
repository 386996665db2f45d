"""after-unreached: ordered after a target that nothing starts, so the order means nothing."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.lint.targets import SOFT, is_of_boot


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        if not situation.starts(unit.name):
            continue
        for _, ref in named(situation, unit, "After"):
            target = situation.graph.id(ref.name)
            loaded = situation.graph.node(target).load_state == "loaded"
            if (
                loaded
                and is_of_boot(target)
                and target not in SOFT
                and not situation.reached(target)
            ):
                fix = f"add Wants={ref.name} beside After={ref.name}"
                why = f"nothing that boot starts pulls in {ref.name}"
                text = f"After={ref.name} has no effect: {why}"
                yield RULE.at(ref.place, unit.name, text, fix=fix)


RULE = Rule(
    "after-unreached",
    "warning",
    does="""\
Finds units that boot starts, with After= on a target that neither boot nor anything that boot
starts pulls in, network-online above all. Targets that are pulled in by what provides them
(network.target, time-sync.target…) and targets that are right in After= whether they are started or
not (remote-fs.target…) are left out.""",
    why="""\
After= orders only what is started anyway; it starts nothing. With nobody pulling in
network-online.target the service starts before the network is there, on this box and not on the one
where some other package happened to want the target.""",
    example="""\
[Unit]
After=network-online.target""",
    instead="""\
[Unit]
Wants=network-online.target
After=network-online.target""",
    source="systemd.special(7); NLnetLabs/nsd#508, aws/amazon-ssm-agent#280",
    check=check,
)
