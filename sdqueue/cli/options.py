"""Parsing a verb's words: argparse with systemctl's habits.

Errors are UsageErrors that name the nearest option; abbreviations are not taken, since a script
that uses one breaks when an option is added. Adds what every verb understands.
"""

import argparse
import os
from typing import NoReturn

from sdqueue.cli.verbs import GLOBAL_OPTIONS, Verb
from sdqueue.words.errors import UsageError
from sdqueue.words.names import did_you_mean

JSON_MODES = ("short", "pretty", "off")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises, and knows its verb."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print and exit on."""
        if "--json: ignored explicit argument" in message:
            message = f"--json takes {', '.join(JSON_MODES)}, written as --json=short"
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message and unknown.startswith("-"):
            raise UsageError(self._unknown(unknown.split()[0]))
        raise UsageError(f"{self.prog.split(' ', 1)[-1]}: {message}. See {self.prog} --help.")

    def _unknown(self, option: str) -> str:
        known = [option for action in self._actions for option in action.option_strings]
        near = did_you_mean(option.partition("=")[0], known) or "."
        verb = self.prog.split(" ", 1)[-1]
        return f"{verb}: there is no option {option}{near} See {self.prog} --help."


def parser_for(verb: Verb) -> Parser:
    """Return a parser with what every verb understands; the verb's module adds the rest."""
    parser = Parser(
        prog=f"sdqueue {verb.name}",
        usage=f"sdqueue {verb.name} {verb.usage}".rstrip(),
        description=f"{verb.help[0].upper()}{verb.help[1:]}.",
        epilog=f"More in sdqueue(1), section {verb.name}.",
        allow_abbrev=False,
        add_help=False,
        formatter_class=_Formatter,
    )
    _add_global(parser)
    return parser


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(100, _columns() - 2))


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _add_global(parser: Parser) -> None:
    from sdqueue import __version__

    group = parser.add_argument_group("options of every verb")
    manager = group.add_mutually_exclusive_group()
    manager.add_argument("--user", dest="system", action="store_false", default=os.geteuid() == 0)
    manager.add_argument("--system", dest="system", action="store_true")
    # As options of their own, so that a bare --json does not take the word behind it.
    for mode in JSON_MODES:
        group.add_argument(f"--json={mode}", dest="json", action="store_const", const=mode)
    group.add_argument("--json", action="store_const", const="pretty")
    parser.set_defaults(json="off")
    group.add_argument("--no-legend", action="store_true")
    group.add_argument("--no-pager", action="store_true")
    group.add_argument("-h", "--help", action="help")
    group.add_argument("--version", action="version", version=f"sdqueue {__version__}")
    for action in group._group_actions:
        action.help = GLOBAL_OPTIONS.get(action.option_strings[-1], argparse.SUPPRESS)
