"""What can go wrong, one class for each reaction of the catcher.

An error is raised where it is known and spoken once, at one of two doors: the CLI (`exit_status`)
and the D-Bus service (`bus_name`). Trouble in a file that a person wrote is not an error but a
value, `sdqueue.words.problem.Problem`.
"""


class SdqueueError(Exception):
    """Anything that sdqueue itself says no to; str() is one sentence: what, where, what to do."""

    exit_status = 1
    bus_name = "org.sdqueue1.Error.Failed"


class UsageError(SdqueueError):
    """The request can't be understood: mend the request."""

    exit_status = 2
    bus_name = "org.sdqueue1.Error.InvalidArgs"


class NoSuchJob(SdqueueError):
    """No job of that name is in any directory of the spool."""

    exit_status = 4
    bus_name = "org.sdqueue1.Error.NoSuchJob"


class WrongState(SdqueueError):
    """The job is there, but not in a state in which that can be done to it."""

    bus_name = "org.sdqueue1.Error.WrongState"


class LaneBusy(SdqueueError):
    """The lane can't be had now; the text says why. Try again when that is over, or wait."""

    exit_status = 5
    bus_name = "org.sdqueue1.Error.LaneBusy"


class LimitsExceeded(SdqueueError):
    """This user has asked for more than one user may have at once: let something go first."""

    bus_name = "org.sdqueue1.Error.LimitsExceeded"


class AccessDenied(SdqueueError):
    """Whoever asks may not do that."""

    bus_name = "org.sdqueue1.Error.AccessDenied"


class AuthorizationNeeded(AccessDenied):
    """They may, once a person has shown who he is: ask again and allow that he be asked."""

    bus_name = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"


class SpoolError(SdqueueError):
    """The spool could not be read or written: nothing was lost, try again when the disk is well."""

    bus_name = "org.sdqueue1.Error.Spool"


class SpoolBusy(SpoolError):
    """Another controller holds this spool."""

    bus_name = "org.sdqueue1.Error.SpoolBusy"


class BusError(SdqueueError):
    """Something on the message bus; the subclasses say which of the three things it was."""

    bus_name = "org.sdqueue1.Error.Bus"


class BusGone(BusError):
    """The connection is closed: connect anew and reconcile."""


class CallTimeout(BusError):
    """No answer in time: the outcome is unknown, look before trying again."""


class RemoteError(BusError):
    """The other side answered with an error; `name` is its D-Bus error name, `text` its words."""

    def __init__(self, name: str, text: str = "") -> None:
        super().__init__(f"{name}: {text}" if text else name)
        self.name = name
        self.text = text
