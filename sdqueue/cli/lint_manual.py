"""sdqueue-lint-units(1), made of the tables that the verb runs on; a test keeps the file in step.

python -m sdqueue.cli.lint_manual > man/sdqueue-lint-units.1
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from textwrap import wrap

from sdqueue.cli.lint_units import EXIT_STATUS, add_arguments
from sdqueue.lint.finding import SEVERITIES
from sdqueue.lint.rule import HEADINGS, Rule
from sdqueue.lint.rules import RULES
from sdqueue.unitbase import BASES

WIDTH = 78
HEAD = r""".TH SDQUEUE\-LINT\-UNITS 1 2026-11-29 sdqueue
.SH NAME
sdqueue\-lint\-units \- prove that unit files will be started at boot
.SH SYNOPSIS
.B sdqueue lint\-units
.RI [ OPTIONS ...]
.RI [ PATH ...]
.SH DESCRIPTION
Answers one question: if these files are installed and the box is rebooted, will everything that
should be started be started, every time?
.PP
The files are laid over the box in imagination, enabled as
.B systemctl enable
would do it, and loaded with all that they name. Then the transaction is built that PID 1 builds at
boot, with what it does about units that are ordered in a circle: it deletes one of their start
jobs. Which one hangs on the order of hash tables, so that a service is there after some boots and
not after others, and nothing fails, because nothing runs. That part is played many times over, and
the report says how often each job is lost, by which lines, and what to change. Nothing on the box
is changed, and no daemon is needed; where there is no systemd either,
.B \-\-base
names a plain box whose facts are built in.
.PP
.I PATH
is a unit file, a drop\-in
.RI ( NAME .d/ X .conf),
or a directory laid out like
.IR /etc/systemd/system ,
with drop\-in directories,
.IR .wants /
directories and links. Of a directory with a directory
.I system
or
.I user
in it, such as /etc/systemd, the one of the manager that is meant is taken. Only what these files
bring is reported. Without any
.I PATH
everything that the box starts is looked at.
.PP
A finding looks like this. Each line of a cycle says that a unit is ordered after the next one, and
where that is written; a default edge names the line that caused it.
.PP
.nf
.RS 2
error[ordering\-cycle] a9\-jobs.service will not be started at some boots
  a9\-jobs.service       After=  a9\-telemetry.service  a9\-jobs.service:3
  a9\-telemetry.service  After=  multi\-user.target     a9\-telemetry.service:2
  multi\-user.target     after   a9\-jobs.service       default: a target orders itself
                                                      after what it pulls in,
                                                      a9\-jobs.service:9
  lost at boot: a9\-jobs.service 89 %, a9\-telemetry.service 11 %
  fix: remove After=multi\-user.target (a9\-telemetry.service:2)
   or: remove After=a9\-telemetry.service (a9\-jobs.service:3)
   or: add After=multi\-user.target to a9\-jobs.service (the target then drops
       its default edge) (a9\-jobs.service:3)
.RE
.fi
"""

JSON = r""".SH JSON
One object. Keys that do not apply are left out, others may be added.
.TP
.B version
1
.TP
.B systemd_version
the version of systemd whose rules were used
.TP
.B base
what the files were laid over: a root directory, or the name of a base
.TP
.B findings
a list of objects, worst first, with
.BR rule ,
.BR severity ,
.BR unit ,
.BR file ,
.B line
and
.B message
(text, but for the number
.BR line ),
and where they apply
.BR cycle ,
.BR lost ,
.BR fixes ,
.BR notes .
.TP
.B cycle
a list of edges, each with
.BR unit ,
.B edge
(always \(lqAfter\(rq:
.B unit
is ordered after
.BR other ),
.BR other ,
.B origin
(file, dropin, link, install, default or implicit),
.BR file ,
.BR line ,
.B stated
(\(lqBefore\(rq where it is written the other way round, in the unit
.BR other )
and
.B note
(the rule behind a default or implicit edge). The
.B other
of an edge is the
.B unit
of the next one, and that of the last one of the first.
.TP
.B lost
a list of objects:
.B job
(as systemd spells it, \(lqa9\-jobs.service/start\(rq),
.B p_deleted
(the share of boots at which it is the job \(lqdeleted to break ordering cycle\(rq) and
.B p_lost
(the share at which it is gone for that or because another one was). Both are over the whole
transaction, not over one cycle.
.TP
.B fixes
a list of objects:
.BR file ,
.BR line ,
.B text
(what to do there) and
.B breaks
(\(lqalone\(rq, or \(lqwith others\(rq where all of these are needed).
.TP
.B notes
a list of sentences
.TP
.B unknown
a list of sentences: what the verdict does not cover
"""

TAIL = r""".SH LIMITS
Devices and whatever else appears only on the running machine are not known beforehand. What
generators write is looked at where it lies, in
.I /run/systemd
or in the directory that
.B \-\-generators
names. Where there is nothing, the generators for
.I /etc/fstab
and for login prompts are emulated if the box has them; others are named as \(lqnot known\(rq if
they may write something. Services that start on a message bus request, or that a program starts,
are not part of the boot. Where a target's order hangs on which of two units systemd happens to load
first, and where a file names a unit that the box does not have, that is said, as \(lqnot
known\(rq.
.PP
The odds are those of a simulation with a fixed seed: the same files give the same numbers. Whether
there is a cycle, and whether it is fatal, is not simulated but decided.
.SH PRE\-COMMIT
Other projects can run it on each commit. A circle may go through files that a commit does not
touch, so give it the directory rather than the changed files:
.PP
.nf
.RS 2
repos:
  \- repo: https://example.org/sdqueue
    rev: v0.1.0
    hooks:
      \- id: sdqueue\-lint\-units
        args: [\-\-base, debian\-13, units/]
        pass_filenames: false
.RE
.fi
.SH SEE ALSO
.BR sdqueue (1),
.BR systemd.unit (5),
.BR systemd.special (7),
.BR systemd\-analyze (1)
"""


def manual() -> str:
    """The whole page."""
    parts = [HEAD, *_options(), *_statuses(), *_formats(), *_silencing(), *_rules(RULES)]
    return _folded("".join([*parts, JSON, *_bases(), TAIL]))


def _folded(page: str) -> str:
    """The page with lines that troff fills folded, as those who read the source like them."""
    lines: list[str] = []
    filled = True
    for line in page.splitlines():
        filled = line == ".fi" or (filled and line != ".nf")
        short = not filled or line.startswith(".") or len(line) <= WIDTH
        folded = (
            [line] if short else wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        )
        lines += folded[:1] + [f"\\&{more}" if more[:1] in ".'" else more for more in folded[1:]]
    return "".join(f"{line}\n" for line in lines)


def _options() -> Iterator[str]:
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    yield ".SH OPTIONS\n.TP\n.B \\-\\-user\nthe units of a user's manager, not of the system\n"
    for action in parser._actions:
        if action.option_strings:
            value = f" {action.metavar or '|'.join(map(str, action.choices or ()))}".rstrip()
            yield f".TP\n.B {_escaped(action.option_strings[-1] + value)}\n"
            yield f"{_escaped(action.help or '')}\n"


def _statuses() -> Iterator[str]:
    yield ".SH EXIT STATUS\n"
    for status, meaning in EXIT_STATUS.items():
        yield f".TP\n.B {status}\n{_escaped(meaning)}\n"


def _formats() -> Iterator[str]:
    said = {
        "text": "for people; colours on a terminal",
        "json": "for programs; see JSON below",
        "sarif": "SARIF 2.1.0, for code scanning services; a cycle is a code flow",
        "github": "workflow commands, which GitHub shows at the line of a change",
        "dot": "the cycles among their neighbours, as input for graphviz",
        "svg": "the same as a picture, without graphviz",
    }
    yield ".SH FORMATS\n"
    for name, meaning in said.items():
        yield f".TP\n.B {name}\n{_escaped(meaning)}\n"


def _silencing() -> Iterator[str]:
    yield ".SH SILENCING A RULE\n"
    yield "With\n.B \\-\\-ignore\nfor all files, or with a comment for the file it is in:\n.PP\n"
    yield _verbatim("# sdqueue-lint: ignore after-unreached the router is always there first")
    yield ".PP\nWithout a reason the comment does nothing, and is a finding itself.\n"


def _rules(rules: Iterable[Rule]) -> Iterator[str]:
    yield ".SH RULES\n"
    yield f"The severities, worst first: {', '.join(SEVERITIES)}. "
    yield "What a rule finds can be worse or better than what it says here.\n"
    for rule in rules:
        yield f".SS {_escaped(rule.name)} ({rule.severity})\n"
        for heading, field in HEADINGS:
            text = getattr(rule, field)
            yield f".TP\n.B {heading}\n"
            is_unit = field in ("example", "instead") and _is_unit(text)
            yield _verbatim(text) if is_unit else f"{_escaped(text)}\n"


def _is_unit(text: str) -> bool:
    """Whether it is a piece of a unit file, whose lines must stay as they are."""
    first = text.split("\n")[0]
    return first.startswith(("[", "#")) or bool(re.match(r"[A-Za-z]+=", first))


def _bases() -> Iterator[str]:
    yield ".SH BASES\n"
    for name, base in BASES.items():
        yield f".TP\n.B {_escaped(name)}\n{_escaped(base.what)}; systemd {base.systemd}\n"


def _verbatim(text: str) -> str:
    return f".nf\n{_escaped(text)}\n.fi\n"


def _escaped(text: str) -> str:
    """Text for roff: no line can be a request, a dash stays a dash."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("’", "'")
    lines = (f"\\&{line}" if line[:1] in (".", "'") else line for line in safe.split("\n"))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(manual())
