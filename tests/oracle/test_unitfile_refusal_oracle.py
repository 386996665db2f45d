"""Does systemd refuse what we say it refuses, and nothing of what we say it takes?"""

import os
import shutil
from pathlib import Path

import pytest
from unitfile_oracle import BINARY, TOP, ask, open_directory

from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath import Tree
from tests.harness.images import machine_version, missing, root_of
from tests.unit.test_unitfile_load import ACCEPTED, REFUSED

COMMANDS = (
    *(
        "/a",
        "/a b",
        "-/a",
        "@/a b",
        "@/a",
        "+/a",
        "!/a",
        "!!/a",
        "!!!/a",
        ":/a",
        "+!/a",
        "a",
        "a b",
    ),
    *(
        "a/b",
        "-a/b",
        "/a/",
        "./a",
        "..",
        "~/a",
        "/a 'b",
        "'/a' b",
        '"/a b"',
        "/a\\x20b",
        "/a\\",
        "'",
    ),
    *(
        "/a ; /b",
        "/a ; b/c",
        "/a \\; b",
        ";",
        "; /a",
        "/a ;",
        "/a;b",
        "/a %i",
        "/a %Q",
        "-/a %Q",
        "%Q",
    ),
    *("/%i", "/a \\q", "/a \\x", "/a \\x41", "/a \\u00e9", "/a \\U0010ffff", "/a \\U00110000"),
    *("/a \\400", "/a \\101", "/a \\000", "-", "@", "", " ", "/a\\\\b", "/a\x01b", "|/a", "/é"),
)
TYPES = (
    *(
        "simple",
        "oneshot",
        "forking",
        "exec",
        "dbus",
        "notify",
        "notify-reload",
        "idle",
        "Simple",
        "",
    ),
)
SERVICES = (
    *(f"ExecStart={each}" for each in COMMANDS),
    *(f"ExecStart=/a\nType={each}" for each in TYPES),
    *(f"ExecStop=/a\nType={each}" for each in TYPES),
    *(f"ExecStart=/a\nExecStart=/b\nType={each}" for each in TYPES),
    *(
        f"ExecStart=/a\nUser={each}"
        for each in ("a", "a b", "0", "00", "65535", "4294967295", "-1")
    ),
    *(
        f"ExecStart=/a\nUser={each}"
        for each in ("a:b", "a/b", ".", "..", "-", "-a", "é", "%Q", "%i")
    ),
    *(f"ExecStart=/a\nGroup={each}" for each in ("1", "a.b", "a@b", "1a", "99999999999")),
    *(
        f"ExecStart=/a\nWorkingDirectory={each}"
        for each in ("~", "-~", "-a", "/a/../b", "/a//b", "")
    ),
    *(f"ExecStart=/a\nRootDirectory={each}" for each in ("/", "", "/a/", "/%i", "%Q", "/a/./b")),
    *(f"ExecStart=/a\nRestart={each}\nType=oneshot" for each in ("no", "on-failure", "on-success")),
    *("ExecStart=/a\nExitType=cgroup\nType=oneshot", "ExecStart=/a\nRestartForceExitStatus=1"),
    *(
        "ExecStart=/a\nRestartForceExitStatus=1\nType=oneshot",
        "BusName=a.b",
        "BusName=c.d\nExecStart=/a",
    ),
    *("RemainAfterExit=yes", "RemainAfterExit=yes\nExecStop=/a", "ExecStop=/a", "ExecStartPre=/a"),
    *("ExecReload=a/b\nExecStart=/a", "PAMName=x\nExecStart=/a\nKillMode=none"),
)
ADDRESSES = tuple(
    f"ListenStream={each}"
    for each in (
        "0",
        "1",
        "65535",
        "65536",
        "x",
        "1.2.3.4:5",
        "[::1]:5",
        "@a",
        "/a",
        "a:1",
        "::1",
        "%Q",
    )
)
OTHERS = (
    *(
        ("socket", f"[Socket]\n{each}")
        for each in ("ListenStream=/a\nListenStream=", "ListenFIFO=a", *ADDRESSES)
    ),
    *(("socket", f"[Socket]\nListenStream=/a\n{each}") for each in ("Accept=yes", "Symlinks=/b")),
    *(
        ("socket", f"[Socket]\nListenStream=1\nAccept=yes\n{each}")
        for each in ("", "Service=x.service")
    ),
    *(
        ("timer", f"[Timer]\n{each}")
        for each in ("OnBootSec=5", "OnBootSec=x", "OnCalendar=daily", "Persistent=yes")
    ),
    *(
        ("path", f"[Path]\n{each}")
        for each in ("PathExists=/a", "PathExists=%Q", "DirectoryNotEmpty=a")
    ),
)


def state_of_each(texts: dict[str, str], version: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the load state of each unit by name: ours, and systemd's."""
    image = root_of(version)
    with open_directory() as root:
        for name, text in texts.items():
            (root / name).write_text(f"{text}\n")
        (root / TOP).write_text("[Unit]\n" + "".join(f"After={name}\n" for name in texts))
        theirs = ask([str(root)], None if image == Path("/") else image)
        units = UnitSet(Tree("", (str(root),)), Host(), version=int(version))
        ours = {name: str(units.get(name).load_state) for name in texts}
    return ours, {name: theirs[name].state for name in texts}


@pytest.mark.skipif(
    not BINARY.exists() or (os.geteuid() == 0 and not shutil.which("setpriv")),
    reason="no systemd to ask",
)
@pytest.mark.parametrize("version", ["252", "257", "262"])
def test_systemd_refuses_what_we_say_and_nothing_else(version: str) -> None:
    why_not = missing(version)
    if why_not or (version != machine_version() and os.geteuid() != 0):
        pytest.skip(why_not or "entering an image needs root")
    texts = {f"s{number}.service": f"[Service]\n{text}" for number, text in enumerate(SERVICES)}
    texts |= {f"o{number}.{kind}": text for number, (kind, text) in enumerate(OTHERS)}
    ours, theirs = state_of_each(texts, version)
    wrong = {
        texts[name]: (ours[name], theirs[name]) for name in texts if ours[name] != theirs[name]
    }
    assert wrong == {}


@pytest.mark.parametrize(("name", "text"), [*REFUSED, *ACCEPTED])
def test_the_cases_of_the_unit_tests_are_true(name: str, text: str) -> None:
    if not machine_version():
        pytest.skip("no systemd here")
    ours, theirs = state_of_each({name: text}, machine_version())
    assert ours == theirs
