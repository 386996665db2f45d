"""`sdqueue uninstall`: takes away what install has put in place; the spool and the jobs stay."""

import os

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.say import remark
from sdqueue.cli.settling import Settling, add_place
from sdqueue.cli.shipped import SERVICE, Put, files
from sdqueue.spool.layout import default_root


def add_arguments(parser: Parser) -> None:
    """Add the options of `uninstall`."""
    add_place(parser)


def run(args: Arguments) -> int:
    """Uninstall."""
    settling = Settling(args)
    target = settling.target
    if settling.speaks:
        settling.manage("disable", "--now", SERVICE, may_fail=True)
    for each in files(target):
        settling.remove(each)
    for side in target.sides:
        # There where the program has been elsewhere when it was installed.
        settling.remove(Put(f"{target.unit_dir(side)}/{SERVICE}.d/10-program.conf", b""))
    if settling.speaks:
        settling.reload_bus()
        settling.manage("daemon-reload")
    spool = default_root(os.environ, system=target.system)
    if os.path.isdir(spool):
        remark(f"the spool {spool} and the configuration were left; jobs that run go on")
    return 0
