"""`sdqueue install`: units proven against the box's boot, put in place, enabled, started, seen."""

import getpass
import os
import sys
from collections.abc import Callable

from sdqueue import __version__
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.proving import prove
from sdqueue.cli.say import remark, warn
from sdqueue.cli.settling import Settling, add_force, add_place, call, lingers
from sdqueue.cli.shipped import SERVICE, files
from sdqueue.words.errors import SdqueueError

_HIDDEN_EARLY = ("/home/", "/root/", "/run/", "/tmp/")


def add_arguments(parser: Parser) -> None:
    """Add the options of `install`."""
    add_place(parser)
    add_force(parser)
    parser.add_argument("--linger", action="store_true", help="with --user: enable lingering too")


def run(args: Arguments) -> int:
    """Install."""
    if args.linger and args.system:
        warn("--linger is for --user: the system's manager always runs")
    settling = Settling(args)
    settle(settling, force=args.force, start=lambda: settling.manage("start", SERVICE))
    if settling.speaks and not settling.target.system:
        _linger(settling, wanted=args.linger)
    return 0


def settle(settling: Settling, *, force: bool, start: Callable[[], None]) -> None:
    """Prove, copy, reload, enable, start, and look whether it runs; or raise SdqueueError."""
    puts = files(settling.target)
    _say_where_early_boot_is_blind(settling)
    against = prove(settling.target, puts, os.environ)
    if against:
        sys.stdout.flush()
        print(against, end="", file=sys.stderr)
        if not force:
            raise SdqueueError(
                "nothing was installed: with these findings the queue is not sure to be started at"
                " boot. Mend them; --force installs all the same."
            )
    for each in puts:
        settling.put(each)
    if not settling.speaks:
        return
    settling.reload_bus()
    settling.manage("daemon-reload")
    settling.manage("enable", SERVICE)
    start()
    if settling.tell("check", f"that {SERVICE} runs and answers on the bus"):
        _look(settling)


def _say_where_early_boot_is_blind(settling: Settling) -> None:
    program = settling.target.program
    if settling.target.system and program.startswith(_HIDDEN_EARLY):
        warn(
            f"{program} is a place that may not be there when the machine boots; the lanes' units"
            " are then made by the controller. `make install` puts all below /usr/local."
        )


def _look(settling: Settling) -> None:
    """See that the unit is active, and that the controller on the bus is this version's."""
    from sdqueue.cli.client import ask
    from sdqueue.cli.place import Place

    side = "--system" if settling.target.system else "--user"
    state = call(["systemctl", side, "is-active", SERVICE]).stdout.strip()
    if state != "active":
        raise SdqueueError(
            f"{SERVICE} is {state}; see journalctl {side} --unit={SERVICE}, and systemctl {side}"
            f" status {SERVICE}"
        )
    properties = ask(Place(system=settling.target.system), lambda client: client.properties())
    version = properties.get("Version")
    if version != __version__:
        raise SdqueueError(
            f"the controller that answers is version {version}, not {__version__}: stop the other"
            " one, see sdqueue doctor"
        )


def _linger(settling: Settling, *, wanted: bool) -> None:
    """Offer lingering, or enable it: without it the queue ends with the last session."""
    user = getpass.getuser()
    if lingers(user):
        return
    if not wanted:
        remark(
            "the queue ends when you log out and starts when you log in. To have it run always:"
            " loginctl enable-linger"
        )
    elif settling.tell("run", "loginctl enable-linger"):
        done = call(["loginctl", "enable-linger"])
        if done.returncode:
            raise SdqueueError(f"loginctl enable-linger: {done.stderr.strip()}")
