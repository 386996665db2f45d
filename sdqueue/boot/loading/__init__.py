"""From unit files to systemd's dependency graph: what is loaded, and every edge with its origin.

Knows which dependencies units get by themselves, by version (252 to 262) and kind of manager.
Must not know files (units come from a function) nor what a job is (`sdqueue.boot.transaction`).
"""

from sdqueue.boot.loading.build import Loaded, build, unit_of_mount
from sdqueue.boot.loading.manager import Manager, MountPoint
from sdqueue.boot.loading.queue import Unsure

__all__ = ["Loaded", "Manager", "MountPoint", "Unsure", "build", "unit_of_mount"]
