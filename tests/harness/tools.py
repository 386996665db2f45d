"""What "needed" means: a test that can't run here is skipped at a desk, and fails where CI=true.

require(manager.missing())         "" is no trouble
require_programs("strace")
@needs("mandoc")                   the same as a decorator
"""

import os
import shutil

import pytest

PACKAGE_OF = {
    "strace": "strace",
    "mandoc": "mandoc",
    "man": "man-db",
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "systemd-analyze": "systemd",
    "busctl": "systemd",
}


# set by `make soak`: random parts at full length
SOAK = bool(os.environ.get("SDQUEUE_SOAK"))


def rounds(slice_of_it: int, all_of_it: int) -> int:
    """Return how many rounds a random test makes: a slice, or all in a soak run."""
    return all_of_it if SOAK else slice_of_it


def require(trouble: str) -> None:
    """Skip the test with that reason, or fail it in CI; "" is no trouble."""
    if not trouble:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing here, and CI must have it: {trouble}", pytrace=False)
    pytest.skip(trouble)


def require_programs(*names: str) -> None:
    """Require programs in PATH."""
    for name in names:
        if not shutil.which(name):
            require(f"no {name} (Debian: apt install {PACKAGE_OF.get(name, name)})")


def require_root() -> None:
    """Require root."""
    require("" if os.geteuid() == 0 else "not root")


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark a test, or a module by `pytestmark`, as one that requires programs in PATH."""
    return pytest.mark.needs(*names)
