"""`sdqueue completion`: shells' completion scripts, and what they ask on each Tab.

The scripts are a few lines: they hand the words to `sdqueue completion --complete`, which knows
verbs, options and their values from the same tables as the parser, and jobs, lanes and units from
the spool, the configuration and the unit directories. So all shells complete the same.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from sdqueue.cli.options import Arguments, Option, Parser, parser_for
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, list_names
from sdqueue.cli.verbs import GLOBAL_OPTIONS, VERBS, Verb, verb_named
from sdqueue.jobtext import shell_quoted
from sdqueue.words.errors import SdqueueError, UsageError
from sdqueue.words.names import SUFFIX, sort_key

FILES = ":files"
"""Printed where the shell should complete file names itself."""

BASH = r"""# bash completion for sdqueue
_sdqueue() {
    local IFS=$'\n'
    mapfile -t COMPREPLY < <(
        sdqueue completion --complete=bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null
    )
    if [[ ${COMPREPLY[0]} == :files ]]; then
        COMPREPLY=()
        compopt -o default
    elif [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
}
complete -F _sdqueue sdqueue
"""

ZSH = r"""#compdef sdqueue
_sdqueue() {
    local -a found
    found=("${(@f)$(sdqueue completion --complete=zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ ${found[1]} == :files ]]; then
        _files
    elif [[ -n ${found[1]} ]]; then
        _describe -V sdqueue found
    fi
}
if [[ ${funcstack[1]} == _sdqueue ]]; then
    _sdqueue "$@"
else
    compdef _sdqueue sdqueue
fi
"""

FISH = r"""# fish completion for sdqueue
function __sdqueue_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process) (commandline -ct)
    set -l found (sdqueue completion --complete=fish -- $words[2..] 2>/dev/null)
    if test "$found[1]" = :files
        __fish_complete_path (commandline -ct)
    else
        string join \n -- $found
    end
end
complete --command sdqueue --no-files --arguments '(__sdqueue_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


class Candidate(NamedTuple):
    """A word that may stand here, and what it is."""

    word: str
    help: str = ""


class Files(Exception):
    """File names may stand here."""


def add_arguments(parser: Parser) -> None:
    """Add the options of `completion`."""
    parser.add_argument("shell", metavar="SHELL", nargs="*", help=f"{', '.join(SCRIPTS)}")
    parser.add_argument(
        "--complete",
        metavar="SHELL",
        choices=tuple(SCRIPTS),
        help="print what may stand for the last of the words that follow --, for that shell",
    )


def run(args: Arguments) -> int:
    """Print the script, or the candidates."""
    if args.complete:
        _print(args.complete, args.shell)
        return 0
    if len(args.shell) != 1 or args.shell[0] not in SCRIPTS:
        raise UsageError(f"completion: name one shell of {', '.join(SCRIPTS)}.")
    sys.stdout.write(SCRIPTS[args.shell[0]])
    return 0


def _print(shell: str, words: Sequence[str]) -> None:
    words = _rejoined(words)
    try:
        found = list(candidates(words))
    except Files:
        print(FILES)
        return
    except SdqueueError:
        return
    for candidate in found:
        print(PRINTERS[shell](candidate, words[-1]))


def _rejoined(words: Sequence[str]) -> list[str]:
    """Return the words with `--opt`, `=`, `value` made one again, which bash takes apart."""
    whole: list[str] = []
    for word in words or [""]:
        if whole and (word == "=" or whole[-1].endswith("=")) and whole[-1].startswith("--"):
            whole[-1] += word
        else:
            whole.append(word)
    return whole


def _for_bash(candidate: Candidate, present: str) -> str:
    # bash completes what stands behind the last `=` only.
    head = present[: present.rfind("=") + 1] if present.startswith("--") else ""
    return shell_quoted(candidate.word.removeprefix(head))


def _for_zsh(candidate: Candidate, _present: str) -> str:
    return f"{candidate.word.replace(':', chr(92) + ':')}:{candidate.help}"


def _for_fish(candidate: Candidate, _present: str) -> str:
    return f"{candidate.word}\t{candidate.help}"


PRINTERS: dict[str, Callable[[Candidate, str], str]] = {
    "bash": _for_bash,
    "zsh": _for_zsh,
    "fish": _for_fish,
}


# What may stand where ---------------------------------------------------------------------------


def candidates(words: Sequence[str]) -> Iterator[Candidate]:
    """Yield what may stand for the last word; raise Files where file names may."""
    *before, present = words
    at = next((at for at, word in enumerate(before) if not word.startswith("-")), None)
    if at is None:
        choice = _options_before() if present.startswith("-") else _verbs()
        yield from _beginning(choice, present)
        return
    verb = verb_named(before[at])
    parser = parser_for(verb)
    _load(verb, parser)
    place = Place(system=_system(before, parser))
    yield from _beginning(_behind(parser, verb, before[at + 1 :], present, place), present)


def _load(verb: Verb, parser: Parser) -> None:
    from sdqueue.cli import load

    load(verb).add_arguments(parser)


def _system(words: Sequence[str], parser: Parser) -> bool:
    given = [word for word in words if word in ("--user", "--system")]
    return given[-1] == "--system" if given else bool(parser.flags["--system"].default)


def _beginning(found: Iterable[Candidate], present: str) -> Iterator[Candidate]:
    return (candidate for candidate in found if candidate.word.startswith(present))


def _verbs() -> Iterator[Candidate]:
    return (Candidate(verb.name, verb.help) for verb in VERBS)


def _options_before() -> Iterator[Candidate]:
    return (Candidate(*option) for option in GLOBAL_OPTIONS.items())


def _behind(
    parser: Parser, verb: Verb, before: Sequence[str], present: str, place: Place
) -> Iterator[Candidate]:
    """Yield what may stand behind a verb."""
    if "--" in before:
        raise Files
    option = parser.flags.get(before[-1]) if before else None
    if option and option.takes_value and option.nargs != "?":
        yield from _values(option, place)
    elif present.startswith("--") and "=" in present:
        flag = present.partition("=")[0]
        if flag in parser.flags:
            for value in _values(parser.flags[flag], place):
                yield Candidate(f"{flag}={value.word}", value.help)
    elif present.startswith("-"):
        yield from (Candidate(flag, option.help) for flag, option in parser.flags.items())
    else:
        yield from WORDS[verb.words](place)


def _values(option: Option, place: Place) -> Iterator[Candidate]:
    if option.choices:
        return map(Candidate, option.choices)
    return WORDS[VALUES.get(option.flags[-1], "")](place)


VALUES = {
    "--lane": "lanes",
    "--after": "jobs",
    "--after-any": "jobs",
    "--on-success": "units",
    "--on-failure": "units",
    "--state": "states",
    "--cwd": "files",
    "--script": "files",
    "--file": "files",
    "--root": "files",
    "--generators": "files",
}
"""What the values of options are: kinds of `WORDS`."""


def _jobs(place: Place, states: Iterable[str] = tuple(DIRECTORY_OF)) -> Iterator[Candidate]:
    for state in states:
        for name in sorted(list_names(place.spool, state), key=sort_key):
            if name.isprintable():
                yield Candidate(name.removesuffix(SUFFIX), str(state))


def _lanes(place: Place) -> Iterator[Candidate]:
    return (Candidate(lane, "lane") for lane in place.lane_names())


def _units(place: Place) -> Iterator[Candidate]:
    from sdqueue.unitpath.search import search_path

    found: set[str] = set()
    for directory in search_path(user=not place.system, environ=os.environ):
        try:
            found.update(os.listdir(directory))
        except OSError:
            continue
    return (
        Candidate(unit, "unit") for unit in sorted(found) if unit.endswith((".service", ".target"))
    )


def _files(_place: Place) -> Iterator[Candidate]:
    raise Files


WORDS: dict[str, Callable[[Place], Iterator[Candidate]]] = {
    "": lambda _place: iter(()),
    "jobs": _jobs,
    "queued": lambda place: _jobs(place, ["queued"]),
    "alive": lambda place: _jobs(place, ["running", "queued"]),
    "parkable": lambda place: _jobs(place, ["queued", "failed"]),
    "parked": lambda place: _jobs(place, ["parked"]),
    "ended": lambda place: _jobs(place, ["failed", "parked", "done", "queued"]),
    "movable": lambda place: _jobs(place, ["queued", "parked", "failed", "done"]),
    "lanes": _lanes,
    "adoptable": lambda place: chain(_lanes(place), _units(place)),
    "units": _units,
    "files": _files,
    "states": lambda _place: map(Candidate, DIRECTORY_OF),
    "shells": lambda _place: map(Candidate, SCRIPTS),
}
"""The kinds of words that can be completed, by the name that the table of verbs has for them."""
