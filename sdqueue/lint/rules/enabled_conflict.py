"""enabled-conflict: two units that boot starts conflict, so one of them isn't started."""

from collections.abc import Iterator

from sdqueue.boot.graph import Kind
from sdqueue.lint.finding import Finding, Lost
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation

CONTRADICTION = "conflicting jobs"
BOTH: tuple[Kind, ...] = ("Conflicts", "ConflictedBy")


def check(situation: Situation) -> Iterator[Finding]:
    boot = situation.box.boot
    base = situation.base_box if boot.p_conflicting or boot.errors else None
    before = base.boot if base else None
    for error, share in boot.errors.items():
        if CONTRADICTION in error and not (before and error in before.errors):
            yield _failing(situation, error, share)
    for job, share in boot.p_conflicting.items():
        unit, _, type_ = job.rpartition("/")
        if type_ == "start" and not (before and job in before.p_conflicting):
            yield _lost(situation, unit, Lost(job, 0.0, share))
    for unit in situation.by_hand():
        errors = situation.box.by_hand_outlook(unit).errors
        told = [error for error in errors if CONTRADICTION in error]
        if told:
            yield _refused(situation, unit, told[0], sum(errors.values()))


def _refused(situation: Situation, unit: str, error: str, share: float) -> Finding:
    subject = error.partition(" for ")[2].split(". ")[0]
    _, file, line = _conflict(situation, subject, started=False)
    fails = "fails" if share >= 0.999 else "fails at times"
    text = f"systemctl start {unit} {fails}: {error}"
    return Finding(RULE.name, RULE.severity, unit, file, line, text)


def _lost(situation: Situation, unit: str, lost: Lost) -> Finding:
    other, file, line = _conflict(situation, unit)
    sure = "will not be started" if lost.p_lost >= 1.0 else "will not be started at some boots"
    meant = unit not in situation.new_units and situation.is_new_file(file)
    return Finding(
        RULE.name,
        "warning" if meant else RULE.severity,
        unit,
        file,
        line,
        f"{unit} {sure}: it conflicts with {other or 'another unit'}, which boot starts as well",
        lost=(lost,),
    )


def _failing(situation: Situation, error: str, share: float) -> Finding:
    unit = error.partition(" for ")[2].split(". ")[0]
    _, file, line = _conflict(situation, unit)
    sure = "the boot fails" if share >= 1.0 else "some boots fail"
    return Finding(RULE.name, "fatal", unit, file, line, f"{sure}: {error}")


def _conflict(situation: Situation, unit: str, *, started: bool = True) -> tuple[str, str, int]:
    """The other unit of a conflict, and where it is written; places in new files first."""
    graph = situation.graph
    found = [
        (not situation.is_new(origin), other, origin)
        for kind in BOTH
        for other in graph.neighbours(unit, kind)
        if situation.starts(other) or not started
        for _, origin in graph.origins(unit, kind, other)
        if origin.kind != "default"
    ]
    if not found:
        return "", "", 0
    _, other, origin = min(found, key=lambda one: one[0])
    return other, origin.file, origin.line


RULE = Rule(
    "enabled-conflict",
    "error",
    does="""\
Finds units that boot would start, but that lose against a Conflicts= of another unit that boot
starts too. Where both are required by the default target, the boot fails; that is fatal. A warning
where a new file displaces a unit of the box, which may be meant. Units that boot doesn't start are
tried alone, as systemctl start would do it.""",
    why="""\
systemd drops one of the two start jobs without a message: the unit that is named in Conflicts=, or,
where each names the other, now one and now the other.""",
    example="""\
# ntp-a.service and ntp-b.service, both wanted by multi-user.target
[Unit]
Conflicts=ntp-b.service""",
    instead="Enable one of them only. An Alias= that both claim keeps both from being enabled.",
    source="systemd/systemd#25125, #7104, #8730",
    check=check,
)
