"""What install, upgrade and uninstall share: options, steps that are told, calls of systemctl.

A step is told before it is done, in one line; with --dry-run it is only told.
"""

import os
import subprocess
from collections.abc import Sequence

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.shipped import SERVICE, Put, Target, target_for
from sdqueue.words.errors import SdqueueError

LINGER_DIR = "/var/lib/systemd/linger"


def add_place(parser: Parser) -> None:
    """Add the options that say what goes where."""
    add = parser.add_argument
    add("--dry-run", action="store_true", help="say what would be done, and do nothing")
    add("--root", metavar="DIR", default="", help="work below DIR; no manager is spoken to")
    add("--prefix", metavar="DIR", default="", help="/usr/local or /usr, for --system")
    add(
        "--program",
        metavar="FILE",
        default="",
        help="the sdqueue that the units start; else this one",
    )


def add_force(parser: Parser) -> None:
    """Add what install and upgrade have besides."""
    parser.add_argument(
        "--force", action="store_true", help="also when lint has found an error; it is printed"
    )


class Settling:
    """One installation being changed: tells its steps, does them unless it is a dry run."""

    def __init__(self, args: Arguments) -> None:
        self.target: Target = target_for(
            os.environ,
            system=args.system,
            root=args.root,
            prefix=args.prefix,
            program=args.program,
        )
        self.dry = bool(args.dry_run)
        # Also `--root=/` is a package being built or an image, with no manager to speak to.
        self.speaks = not args.root

    def tell(self, what: str, about: str) -> bool:
        """Say a step; return whether to do it."""
        print(f"{'would ' if self.dry else ''}{what} {about}", flush=True)
        return not self.dry

    def put(self, each: Put) -> None:
        """Write one file, in one step, so that a manager that looks sees the old one or the new."""
        place = f"{self.target.root}{each.file}"
        if _content(place) == each.data:
            return
        if self.tell("replace" if os.path.lexists(place) else "write", place):
            with _telling(place):
                _write(place, each)

    def remove(self, each: Put) -> None:
        """Remove one file, and its directory where that was for this file alone."""
        place = f"{self.target.root}{each.file}"
        if os.path.lexists(place) and self.tell("remove", place):
            with _telling(place):
                os.unlink(place)
            directory = os.path.dirname(place)
            if directory.endswith(f"/{SERVICE}.d") and not os.listdir(directory):
                os.rmdir(directory)

    def manage(self, *words: str, may_fail: bool = False) -> None:
        """Have systemctl do something with the manager."""
        side = "--system" if self.target.system else "--user"
        if self.tell("run", " ".join(("systemctl", side, *words))):
            done = call(["systemctl", side, *words])
            if done.returncode and not may_fail:
                why = done.stderr.strip() or f"exit status {done.returncode}"
                raise SdqueueError(f"systemctl {side} {' '.join(words)}: {why}")

    def reload_bus(self) -> None:
        """Have the system bus read its policy again."""
        if self.target.system:
            self.manage("reload", "dbus.service", may_fail=True)


class _telling:
    """Turn an OSError into a sentence."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            hint = "; as root, or with --user" if isinstance(error, PermissionError) else ""
            raise SdqueueError(f"{self._place}: {error.strerror}{hint}") from None


def call(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, or raise SdqueueError where it is not there."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise SdqueueError(f"{argv[0]} can't be run: {error.strerror}") from None


def lingers(user: str) -> bool:
    """Say whether the user's manager runs without a session."""
    return os.path.exists(f"{LINGER_DIR}/{user}")


def _content(place: str) -> bytes | None:
    try:
        with open(place, "rb") as file:
            return file.read()
    except OSError:
        return None


def _write(place: str, each: Put) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    aside = f"{place}.sdqueue-new"
    with open(aside, "wb") as file:
        os.fchmod(file.fileno(), each.mode)
        file.write(each.data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, place)
