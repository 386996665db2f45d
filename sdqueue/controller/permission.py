"""Who may change what: root and the queue's owner all, a job's owner that job, others by polkit.

Knows the actions of the policy that is installed with the machine's queue, and how polkit is asked.
Asked is on the bus that the call came over, and on the system bus only: a user's bus is the user's
own. Where polkit is not there, does not know the action or does not answer, the answer is no.
"""

from typing import TYPE_CHECKING, NamedTuple, cast

from sdqueue.bus.service import Credentials, Request
from sdqueue.bus.wire import ALLOW_INTERACTIVE_AUTHORIZATION, Variant
from sdqueue.words.errors import AccessDenied, AuthorizationNeeded, BusError

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller

POLKIT = "org.freedesktop.PolicyKit1"
AUTHORITY_PATH = "/org/freedesktop/PolicyKit1/Authority"
AUTHORITY = f"{POLKIT}.Authority"
PREFIX = "org.sdqueue1."

ANSWER_SEC = 20.0
"""How long polkit may take where no person is asked: a call waits 25 s by default."""
PERSON_SEC = 120.0
"""How long a person may take to answer."""
_ALLOW_USER_INTERACTION = 1


class Guarded(NamedTuple):
    """What needs leave: polkit's answer if no rule of the box says otherwise, and what it is."""

    default: str
    help: str


ACTIONS: dict[str, Guarded] = {
    "manage-jobs": Guarded("auth_admin_keep", "cancel jobs of other users"),
    "manage-lanes": Guarded("auth_admin_keep", "pause lanes and let them go on"),
    "acquire-lease": Guarded("auth_admin_keep", "take a lane without a job"),
}
"""The actions of polkit, without `org.sdqueue1.` before them. The policy file says the same."""


async def permitted(
    request: Request, queue: "Controller", action: str, *, owner: int | None = None
) -> Credentials:
    """Return who calls, where they may do `action` to what belongs to uid `owner`.

    Raise AccessDenied where they may not, AuthorizationNeeded where they might after a person has
    shown who he is, and the call did not say that one may be asked.
    """
    caller = await request.credentials()
    if caller.uid in (0, queue.state.uid) or (owner is not None and caller.uid == owner):
        return caller
    what = ACTIONS[action].help
    if not queue.options.system:
        raise AccessDenied(
            f"only root and uid {queue.state.uid}, whose queue this is, may {what};"
            f" this is uid {caller.uid}."
        )
    await _ask_polkit(request, action, f"uid {caller.uid} may not {what}")
    return caller


async def _ask_polkit(request: Request, action: str, refusal: str) -> None:
    """Return where polkit says yes; raise where it says anything else, or nothing."""
    asks_person = bool(request.message.flags & ALLOW_INTERACTIVE_AUTHORIZATION)
    try:
        answer = await request.service.bus.call(
            POLKIT,
            AUTHORITY_PATH,
            AUTHORITY,
            "CheckAuthorization",
            "(sa{sv})sa{ss}us",
            ("system-bus-name", {"name": Variant("s", request.sender)}),
            PREFIX + action,
            {},
            _ALLOW_USER_INTERACTION if asks_person else 0,
            "",
            timeout_sec=PERSON_SEC if asks_person else ANSWER_SEC,
        )
        authorized, needs_person, _details = cast("tuple[bool, bool, dict[str, str]]", answer[0])
    except (BusError, ValueError, IndexError, TypeError) as error:
        raise AccessDenied(f"{refusal}, and polkit can't be asked: {error}") from None
    if authorized is True:
        return
    if needs_person and not asks_person:
        raise AuthorizationNeeded(f"{refusal} without authorization ({PREFIX}{action})")
    raise AccessDenied(f"{refusal} ({PREFIX}{action})")
