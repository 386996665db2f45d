"""The text of `sdqueue VERB --help`, from the verb's options."""

import textwrap
from shutil import get_terminal_size

from sdqueue.cli.options import GLOBAL_GROUP, Option, Parser

INDENT, WIDEST = 30, 100


def help_of(parser: Parser) -> str:
    """Return the help of a verb."""
    verb = parser.verb
    columns = max(50, min(WIDEST, get_terminal_size().columns) - 1)
    also = f" Also: {', '.join(verb.aliases)}." if verb.aliases else ""
    lines = [f"sdqueue {verb.name} {verb.usage}".rstrip(), ""]
    lines += textwrap.wrap(f"{verb.help[0].upper()}{verb.help[1:]}.{also}", columns)
    groups = list(dict.fromkeys(option.group for option in parser.options))
    for group in sorted(groups, key=lambda group: group == GLOBAL_GROUP):
        shown = [option for option in parser.options if option.group == group and option.help]
        if shown:
            lines += ["", f"{group}:"]
            for option in shown:
                lines += _lines(option, columns)
    return "\n".join([*lines, "", f"More in sdqueue(1), section {verb.name}.", ""])


def written(option: Option) -> str:
    """Return how an option is written: `-n, --lines=N`."""
    if not option.flags:
        return option.metavar
    value = ""
    if option.takes_value:
        value = {"?": f"[={option.metavar}]", "+": f" {option.metavar}…"}.get(
            option.nargs, f"={option.metavar}"
        )
    return ", ".join(option.flags) + value


def _lines(option: Option, columns: int) -> list[str]:
    head = f"  {written(option)}"
    text = textwrap.wrap(option.help, columns - INDENT) or [""]
    if len(head) > INDENT - 2:
        return [head, *(" " * INDENT + line for line in text)]
    return [f"{head:<{INDENT}}{text[0]}", *(" " * INDENT + line for line in text[1:])]
