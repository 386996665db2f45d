"""Is a file read as systemd reads it? Many small odd files at once, by what becomes of two keys."""

import os
import random
import shutil
from pathlib import Path

import pytest
from unitfile_oracle import BINARY, TOP, Seen, ask, open_directory

from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath import Tree

pytestmark = pytest.mark.skipif(
    not BINARY.exists() or (os.geteuid() == 0 and not shutil.which("setpriv")),
    reason="no systemd to ask",
)
PIECES = (
    *(
        b"[Unit]\n",
        b"[Install]\n",
        b"[X-a]\n",
        b"[Nonsense]\n",
        b"Wants=",
        b"Wants=a.target ",
        b"\n",
    ),
    *(b"b.target", b" ", b"\t", b"=", b"\\\n", b"\\", b"# ", b";", b"c.target\n", b"\r", b"\r\n"),
    *(
        b"Wants=f.target",
        b"\0",
        b"\n\n",
        b"[",
        b"]",
        b"\xef\xbb\xbf",
        b"\xc3\xa9",
        b"Wants =d.target\n",
        b"x",
    ),
)
RARE = (b"\xff", b"[Unit]x\n", b'["Unit"]\n', b"\xef\xbf\xbf", b"\xed\xa0\x80", b"[\x01]\n")
FILES = 150


def odd_file(pick: random.Random) -> bytes:
    body = b"".join(pick.choices(PIECES, k=pick.randint(1, 14)))
    if pick.random() < 0.1:
        body += pick.choice(RARE) + b"\n[Unit]\nWants=e.target\n"
    return pick.choice((b"[Unit]\n", b"[Unit]\n", b"\xef\xbb\xbf[Unit]\n", b"")) + body


def wanted(seen: Seen) -> tuple[str, set[str]]:
    return seen.state, seen.edges.get("Wants", set())


@pytest.mark.parametrize("seed", range(4))
def test_odd_files_are_read_as_systemd_reads_them(seed: int) -> None:
    pick = random.Random(seed)
    with open_directory() as root:
        names = [f"t{number}.target" for number in range(FILES)]
        texts = {name: odd_file(pick) for name in names}
        for name, text in texts.items():
            Path(root, name).write_bytes(text)
        Path(root, TOP).write_text(f"[Unit]\nWants={' '.join(names)}\n")
        theirs = ask([str(root)])
        units = UnitSet(Tree("", (str(root),)), Host(), version=252)
        for name in names:
            unit = units.get(name)
            ours = {word for word, _ in unit.words("Unit", "Wants") if word.endswith(".target")}
            known = {word for word in ours if word in theirs}
            if unit.load_state == "masked":
                continue
            assert (str(unit.load_state), known) == wanted(theirs[name]), texts[name]
