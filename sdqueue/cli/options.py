"""Parsing a verb's words, with systemctl's habits; declared as argparse has it, but quick to load.

`sdqueue submit` may be called a thousand times by a script, and argparse takes as long to load as
the interpreter does to start. So this is the part of it that the verbs use: `add_argument` with
the same words, options anywhere before `--`, values behind `=` or in the next word. Abbreviations
are not taken: a script that uses one breaks when an option is added. Errors are UsageErrors that
name the nearest option.
"""

import os
import sys

from sdqueue.cli.verbs import GLOBAL_OPTIONS, Verb
from sdqueue.words.errors import UsageError
from sdqueue.words.names import did_you_mean, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

REST = "..."
"""`nargs` of a positional that takes every word from its first one on, options or not."""
JSON_MODES = ("short", "pretty", "off")
GLOBAL_GROUP = "Options of every verb"
_VALUED = ("store", "append", "extend")


class Arguments:
    """What was parsed, as attributes."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Option:
    """An option or a positional, as `add_argument` was told it; the words mean what argparse's do.

    With `nargs` "?" the value is only taken from behind `=`, and `const` stands where there is
    none: a bare `--json` must not take the word that follows it.
    """

    __slots__ = (
        "action",
        "choices",
        "const",
        "default",
        "dest",
        "flags",
        "group",
        "help",
        "metavar",
        "nargs",
        "type",
    )

    def __init__(self, flags: "Sequence[str]", group: str, settings: "dict[str, Any]") -> None:
        self.flags = tuple(flag for flag in flags if flag.startswith("-"))
        self.group = group
        self.action: str = settings.pop("action", "store")
        self.nargs: str = settings.pop("nargs", "")
        self.const = settings.pop("const", None)
        self.choices: tuple[str, ...] = tuple(settings.pop("choices", ()))
        self.help: str = settings.pop("help", "")
        self.type: Callable[[str], Any] = settings.pop("type", str)
        longest = max(flags, key=len)
        self.dest: str = settings.pop("dest", longest.lstrip("-").replace("-", "_"))
        self.metavar: str = settings.pop("metavar", self.dest.upper())
        empty: object = [] if self.nargs in ("*", REST) else self.action == "store_true" or None
        self.default = settings.pop("default", False if empty is True else empty)
        if settings:
            raise TypeError(f"{longest}: {', '.join(settings)} is not understood here")

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.flags[-1] if self.flags else self.metavar

    @property
    def takes_value(self) -> bool:
        """Whether a word belongs to it."""
        return self.action in _VALUED

    def converted(self, text: str) -> "Any":
        """Return the value of a text, or raise UsageError."""
        if self.choices and text not in self.choices:
            near = did_you_mean(text, self.choices) or "."
            raise UsageError(
                f"{self.name}: {shown(text)} is none of {', '.join(self.choices)}{near}"
            )
        try:
            return self.type(text)
        except ValueError:
            raise UsageError(f"{self.name}: {shown(text)} is no whole number.") from None


class Group:
    """Options under one head in the help."""

    def __init__(self, parser: "Parser", title: str) -> None:
        self._parser = parser
        self._title = title

    def add_argument(self, *flags: str, **settings: "Any") -> None:
        """Add an option or a positional."""
        self._parser.options.append(Option(flags, self._title, settings))


class Parser(Group):
    """The options and positionals of one verb."""

    def __init__(self, verb: Verb) -> None:
        super().__init__(self, "Options")
        self.verb = verb
        self.options: list[Option] = []
        self._defaults: dict[str, Any] = {}

    def add_argument_group(self, title: str) -> Group:
        """Return a group; its options stand under `title` in the help."""
        return Group(self, title)

    def set_defaults(self, **values: "Any") -> None:
        """Say what options are where they are not given."""
        self._defaults.update(values)

    @property
    def flags(self) -> "dict[str, Option]":
        """The options by what is written for them."""
        return {flag: option for option in self.options for flag in option.flags}

    @property
    def positionals(self) -> list[Option]:
        """What is no option, in order."""
        return [option for option in self.options if not option.flags]

    def parse_args(self, words: "Sequence[str]") -> Arguments:
        """Return what the words say, or raise UsageError; `--help` and `--version` end here."""
        found = Arguments()
        for option in self.options:
            setattr(found, option.dest, option.default)
        for name, value in self._defaults.items():
            setattr(found, name, value)
        self._assign(found, _Words(self, found).read(list(words)))
        return found

    def _assign(self, found: Arguments, words: list[str]) -> None:
        for option in self.positionals:
            if option.nargs in ("*", "+", REST):
                taken, words = words, []
            else:
                taken, words = words[:1], words[1:]
            if not taken and option.nargs in ("", "+"):
                raise self.trouble(f"{option.metavar} is missing")
            if taken:
                values = [option.converted(word) for word in taken]
                setattr(found, option.dest, values if option.nargs else values[0])
        if words:
            raise self.trouble(f"{shown(words[0])} is one word too many")

    def trouble(self, what: str) -> UsageError:
        """Return the error for words that can't be understood."""
        return UsageError(f"{self.verb.name}: {what}. See sdqueue {self.verb.name} --help.")


class _Words:
    """Goes through the words once, setting what options say."""

    def __init__(self, parser: Parser, found: Arguments) -> None:
        self._parser = parser
        self._found = found
        self._flags = parser.flags
        self._has_rest = any(option.nargs == REST for option in parser.positionals)

    def read(self, words: list[str]) -> list[str]:
        """Take the options out and return the other words."""
        others: list[str] = []
        while words:
            word = words.pop(0)
            if word == "--":
                return others + words
            if len(word) < 2 or word[0] != "-":
                others.append(word)
                if self._has_rest:
                    return others + words
            elif word[1] == "-":
                self._long(word, words)
            else:
                self._short(word, words)
        return others

    def _long(self, word: str, words: list[str]) -> None:
        flag, equals, value = word.partition("=")
        option = self._option(flag)
        if equals and not option.takes_value:
            raise self._parser.trouble(f"{flag} takes no value")
        if not option.takes_value:
            self._flag(option)
        elif equals:
            self._value(option, value, words)
        elif option.nargs == "?":
            setattr(self._found, option.dest, option.const)
        else:
            self._value(option, self._next(option, words), words)

    def _short(self, word: str, words: list[str]) -> None:
        """Read `-f`, `-n5`, `-n 5`, or several flags in one word."""
        letters = word[1:]
        while letters:
            option = self._option(f"-{letters[0]}")
            letters = letters[1:]
            if option.takes_value:
                self._value(option, letters or self._next(option, words), words)
                return
            self._flag(option)

    def _option(self, flag: str) -> Option:
        option = self._flags.get(flag)
        if option is None:
            near = did_you_mean(flag, list(self._flags)).removesuffix("?").replace("; ", " (")
            hint = f"{near}?)" if near else ""
            raise self._parser.trouble(f"there is no option {shown(flag)}{hint}")
        return option

    def _next(self, option: Option, words: list[str]) -> str:
        if not words:
            raise self._parser.trouble(f"{option.name} needs a value")
        return words.pop(0)

    def _value(self, option: Option, text: str, words: list[str]) -> None:
        values = [option.converted(text)]
        if option.nargs == "+":
            while words and not words[0].startswith("-"):
                values.append(option.converted(words.pop(0)))
        if option.action == "store":
            setattr(self._found, option.dest, values[0])
        else:
            before = getattr(self._found, option.dest) or []
            setattr(self._found, option.dest, [*before, *values])

    def _flag(self, option: Option) -> None:
        if option.action == "help":
            from sdqueue.cli.optionhelp import help_of

            self._answer(help_of(self._parser))
        elif option.action == "version":
            from sdqueue import __version__

            self._answer(f"sdqueue {__version__}\n")
        else:
            value = {"store_true": True, "store_false": False}.get(option.action, option.const)
            setattr(self._found, option.dest, value)

    def _answer(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        raise SystemExit(0)


def parser_for(verb: Verb) -> Parser:
    """Return a parser with what every verb understands; the verb's module adds the rest."""
    parser = Parser(verb)
    add = parser.add_argument_group(GLOBAL_GROUP).add_argument
    for flags, settings in _every_verb():
        add(*flags, help=GLOBAL_OPTIONS[flags[-1]], **settings)
    return parser


def _every_verb() -> "Iterable[tuple[tuple[str, ...], dict[str, Any]]]":
    is_root = os.geteuid() == 0
    yield ("--user",), {"dest": "system", "action": "store_false", "default": is_root}
    yield ("--system",), {"dest": "system", "action": "store_true", "default": is_root}
    yield (
        ("--json",),
        {
            "nargs": "?",
            "const": "pretty",
            "default": "off",
            "choices": JSON_MODES,
            "metavar": "MODE",
        },
    )
    yield ("--no-legend",), {"action": "store_true"}
    yield ("--no-pager",), {"action": "store_true"}
    yield ("-h", "--help"), {"action": "help"}
    yield ("--version",), {"action": "version"}
