"""Floor 6: the command line. One verb = one module = one section of sdqueue(1).

`main` finds the verb, loads its module and no other, and is the door at which errors are spoken:
one line on stderr, and the exit status that the error's class has. A verb's module offers
`add_arguments(parser)` and `run(args) -> int`.
"""

import sys

from sdqueue.cli.verbs import GLOBAL_OPTIONS, Verb, verb_named
from sdqueue.words.errors import SdqueueError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from sdqueue.cli.options import Arguments, Parser

    class VerbModule(Protocol):
        """What a verb's module offers."""

        @staticmethod
        def add_arguments(parser: Parser) -> None: ...

        @staticmethod
        def run(args: Arguments) -> int: ...


DEFAULT_VERB = "status"


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command line and return its exit status."""
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except SdqueueError as error:
        _say(str(error))
        return error.exit_status
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        return _interrupted()
    return status


def _run(words: list[str]) -> int:
    before, name, rest = _split(words)
    if name is None:
        if _asks(before, "-h", "--help"):
            return _overview()
        if _asks(before, "--version"):
            return _version()
        name = DEFAULT_VERB
    verb = verb_named(name)
    module = load(verb)
    from sdqueue.cli.options import parser_for

    parser = parser_for(verb)
    module.add_arguments(parser)
    return module.run(parser.parse_args([*before, *rest]))


def _split(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Part the words into options before the verb, the verb (None if there is none), the rest."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        option = words[at].partition("=")[0]
        if option not in GLOBAL_OPTIONS:
            raise UsageError(
                f"{words[at]} stands before the verb, where only "
                f"{', '.join(GLOBAL_OPTIONS)} may. See sdqueue --help."
            )
        at += 1
    return words[:at], words[at] if at < len(words) else None, words[at + 1 :]


def _asks(words: list[str], *options: str) -> bool:
    return any(word in options for word in words)


def load(verb: Verb) -> "VerbModule":
    """Return the verb's module."""
    # importlib would be one more module to load.
    name = f"sdqueue.cli.{verb.module}"
    __import__(name)
    module: VerbModule = sys.modules[name]  # type: ignore[assignment]
    return module


def _overview() -> int:
    from sdqueue.cli.overview import overview

    sys.stdout.write(overview())
    return 0


def _version() -> int:
    from sdqueue import __version__

    print(f"sdqueue {__version__}")
    return 0


def _say(text: str) -> None:
    from sdqueue.cli.safe import safe

    try:
        sys.stdout.flush()
        print(f"sdqueue: {safe(text)}", file=sys.stderr)
    except OSError:
        pass


def _reader_gone() -> int:
    """End quietly when nobody reads on, with the status that a shell gives to SIGPIPE."""
    import os

    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError:
        pass
    return 141


def _interrupted() -> int:
    """End as Ctrl-C ends a program: by the signal, so that a script around us ends too."""
    import os
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    return 130
