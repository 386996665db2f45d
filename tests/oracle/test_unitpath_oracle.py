"""Does systemd look into the same directories, and say the same of this machine?"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from unitfile_oracle import BINARY, TOP, ask_text, open_directory

from sdqueue.unitfile.specifier import FULL_SPECIFIERS, expand
from sdqueue.unitpath import search_path
from sdqueue.unitpath.host import read_host, systemd_version
from tests.harness.images import SUITES, machine_version, missing, root_of

USER = {"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1"}
ENVIRONMENTS = (
    {},
    {"SYSTEMD_UNIT_PATH": "/a:/b"},
    {"SYSTEMD_UNIT_PATH": "/a:"},
    {**USER, "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"},
    {**USER, "XDG_CONFIG_DIRS": "/x:/y", "XDG_DATA_DIRS": "/z"},
)


def unit_paths(root: Path, environ: dict[str, str], *, user: bool) -> list[str]:
    """Return what systemd-analyze of a root prints."""
    enter = [] if root == Path("/") else ["/usr/sbin/chroot", str(root)]
    argv = [*enter, "/usr/bin/systemd-analyze", "unit-paths", "--user" if user else "--system"]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("environ", ENVIRONMENTS)
@pytest.mark.parametrize("version", SUITES)
def test_the_search_path_is_the_one_of_that_version(
    version: str, environ: dict[str, str], user: bool
) -> None:
    why_not = missing(version)
    here = version == machine_version()
    if why_not or (not here and os.geteuid() != 0):
        pytest.skip(why_not or "entering an image needs root")
    env = {**USER, **environ} if user else environ
    ours = list(search_path(user=user, environ=env, version=int(version)))
    theirs = unit_paths(root_of(version), env, user=user)
    # Debian's systemd is built to have its own units below /lib up to v254; both are one there.
    assert sorted(ours) == sorted(theirs)
    assert [p for p in ours if "/lib/systemd/s" not in p] == [
        p for p in theirs if "/lib/systemd/s" not in p
    ]


@pytest.mark.skipif(not machine_version(), reason="no systemd here")
def test_the_version_of_this_machine_is_found() -> None:
    assert systemd_version() == int(machine_version())


LETTERS = sorted(set(FULL_SPECIFIERS) - set("dD"))


@pytest.mark.skipif(
    not BINARY.exists() or (os.geteuid() == 0 and not shutil.which("setpriv")),
    reason="no systemd to ask",
)
@pytest.mark.parametrize("name", ["a-b@c-d\\x2de.target", "plain-x.target"])
def test_specifiers_say_what_systemd_says_of_this_machine(name: str) -> None:
    with open_directory() as root:
        text = " ".join(f"{letter}=<%{letter}>" for letter in LETTERS) + " 100%% %. %"
        file = f"{name.partition('@')[0]}@.target" if "@" in name else name
        (root / file).write_text(f"[Unit]\nDescription={text}\n")
        (root / TOP).write_text(f"[Unit]\nWants={name}\n")
        said = ask_text([str(root)])
        start = said.index(f"Unit {name}:\n")
        theirs = said[start:].splitlines()[1].removeprefix("\t\tDescription: ")
        fragment = str(root / file)
        ours = expand(
            text, name, read_host(), table=FULL_SPECIFIERS, fragment_file=fragment, max_length=9999
        )
        # The manager runs as nobody here, so that it may be asked at all.
        assert _without_user(ours) == _without_user(theirs)


def _without_user(text: str) -> str:
    return " ".join(word for word in text.split(" ") if word[:2] not in USERS)


USERS = {f"{letter}=" for letter in "uUgGhs"}
