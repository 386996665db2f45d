"""Whose a process is, on a booted machine with two users who call their directories what they like.

One machine of each kind plays all the scenes at once; each queue is asked for all of them.
"""

from dataclasses import dataclass

import pytest

from sdqueue.controller.whose import NO_PATH, NO_UNIT, Belonging
from sdqueue.core.owner import Standing
from tests.harness.container import PYTHONPATH, Container
from tests.harness.waiting import eventually
from tests.harness.whose import ask

ID = "0123456789abcdef" * 4
ENGINES = ["llm-engine-*", "*.slice", "user@*", "session-*"]
"""What yields; of the last three there is none that may, whatever a person writes."""
JOB = "sdqueue-job-x.service"

BE = """
# NAME [DIRECTORY]: go there, by a way below one's own control group or beside it, and say so
if [ "$2" ]; then
    top=/sys/fs/cgroup; [ ! -d $top/unified ] || top=$top/unified
    cd "$top/$(sed -n s,^0::/,,p /proc/self/cgroup)"
    mkdir -p "$2"
    echo $$ >"$2/cgroup.procs"
fi
echo $$ >/srv/pids/.$1
mv /srv/pids/.$1 /srv/pids/$1
exec sleep infinity
"""
SCOPE = ["systemd-run", "--scope", "--quiet"]
USER_SCOPE = ["systemd-run", "--user", "--scope", "--quiet"]
DELEGATED = ["--property=Delegate=yes"]

HERS_FAKED = "user-{anna}.slice/user@{anna}.service/app.slice/llm-engine-real.service"
HIS_FAKED = "user-{bert}.slice/user@{bert}.service/app.slice/llm-engine-y.service"
IN_HERS, IN_HIS = "--slice=user-{anna}.slice", "--slice=user-{bert}.slice"

# name: (who starts it, the options of systemd-run or what it runs, where the process goes)
# {anna} and {bert} are their user ids.
SCENES: dict[str, tuple[str, list[str], str]] = {
    "engine": ("anna", ["--unit=llm-engine-real.service"], ""),
    "nested": ("anna", ["--slice=app-a\\x2db.slice", "--unit=llm-engine-n\\x2d1.service"], ""),
    "scope": ("anna", ["--unit=via", *USER_SCOPE, "--unit=llm-engine-s"], ""),
    "by-hand": ("anna", ["--unit=bench.service"], ""),
    "job": ("anna", [f"--unit={JOB}"], ""),
    "below": ("anna", ["--unit=evil-1", *DELEGATED], "llm-engine-x.service"),
    "as-his": ("anna", ["--unit=evil-2", *DELEGATED], HIS_FAKED),
    "as-job": ("anna", ["--unit=evil-3", *DELEGATED], JOB),
    "bare": ("anna", ["--unit=evil-4", *DELEGATED], "../llm-engine-fake.service"),
    "her-docker": ("anna", ["--unit=via-docker", *USER_SCOPE, f"--unit=docker-{ID}"], ""),
    "his-engine": ("bert", ["--unit=llm-engine-y.service"], ""),
    "as-hers": ("bert", ["--unit=evil", *DELEGATED], HERS_FAKED),
    "her-session": ("root", [*SCOPE, "--uid=anna", IN_HERS, "--unit=session-71"], ""),
    "her-sudo": ("root", [*SCOPE, IN_HERS, "--unit=session-72"], ""),
    "his-session": ("root", [*SCOPE, "--uid=bert", IN_HIS, "--unit=session-73"], ""),
    "docker": ("root", [*SCOPE, f"--unit=docker-{ID}"], ""),
    "cgroupfs": ("root", [*SCOPE, "--unit=via", "--slice=-.slice"], f"../docker/{ID}"),
    "machine": ("root", [*SCOPE, "--slice=machine.slice", "--unit=machine-web"], ""),
    "service": ("root", ["--unit=llm-engine-sys.service"], ""),
    "her-service": ("root", ["--unit=llm-engine-own.service", "--uid=anna"], ""),
    "root-evil": ("root", ["--unit=evil.service", *DELEGATED], f"user.slice/{HERS_FAKED}"),
}

OURS, YIELDING = Standing.OURS, Standing.YIELDING
FOREIGN, UNTOUCHABLE = Standing.FOREIGN, Standing.UNTOUCHABLE
HERS, HIS = "user@{anna}.service", "user@{bert}.service"
NOT_HERS = "of uid {anna}, whom this user can't stop"
NOT_HIS = "of uid {bert}, whom this user can't stop"
NOT_ROOTS = "of uid {root}, whom this user can't stop"
WORD = "%s by its own word"
CONTAINER = "container 0123456789ab"

# who asks: scene: (standing, unit, whose, note)
EXPECTED: dict[str, dict[str, tuple[Standing, str, str, str]]] = {
    "anna": {
        "engine": (YIELDING, "llm-engine-real.service", "anna", ""),
        "nested": (YIELDING, "llm-engine-n\\x2d1.service", "anna", ""),
        "scope": (YIELDING, "llm-engine-s.scope", "anna", ""),
        "by-hand": (FOREIGN, "bench.service", "anna", ""),
        "job": (OURS, JOB, "anna", ""),
        "below": (FOREIGN, "evil-1.service", "anna", ""),
        "as-his": (FOREIGN, "evil-2.service", "anna", ""),
        "as-job": (FOREIGN, "evil-3.service", "anna", ""),
        "bare": (FOREIGN, "app.slice", "anna", NO_UNIT),
        "her-docker": (FOREIGN, f"docker-{ID}.scope", "anna", CONTAINER),
        "his-engine": (UNTOUCHABLE, HIS, "bert", f"{WORD % 'llm-engine-y.service'}; {NOT_HIS}"),
        "as-hers": (UNTOUCHABLE, HIS, "bert", f"{WORD % 'evil.service'}; {NOT_HIS}"),
        "her-session": (FOREIGN, "session-71.scope", "anna", ""),
        "her-sudo": (FOREIGN, "session-72.scope", "anna", ""),
        "his-session": (UNTOUCHABLE, "session-73.scope", "bert", NOT_HIS),
        "docker": (FOREIGN, f"docker-{ID}.scope", "root", CONTAINER),
        "cgroupfs": (FOREIGN, "", "root", CONTAINER),
        "machine": (FOREIGN, "machine-web.scope", "root", "machine web"),
        "service": (UNTOUCHABLE, "llm-engine-sys.service", "root", NOT_ROOTS),
        "her-service": (FOREIGN, "llm-engine-own.service", "anna", ""),
        "root-evil": (UNTOUCHABLE, "evil.service", "root", NOT_ROOTS),
    },
    "bert": {
        "engine": (UNTOUCHABLE, HERS, "anna", f"{WORD % 'llm-engine-real.service'}; {NOT_HERS}"),
        "as-his": (UNTOUCHABLE, HERS, "anna", f"{WORD % 'evil-2.service'}; {NOT_HERS}"),
        "job": (UNTOUCHABLE, HERS, "anna", f"{WORD % JOB}; {NOT_HERS}"),
        "her-docker": (UNTOUCHABLE, HERS, "anna", f"{WORD % f'docker-{ID}.scope'}; {NOT_HERS}"),
        "his-engine": (YIELDING, "llm-engine-y.service", "bert", ""),
        "as-hers": (FOREIGN, "evil.service", "bert", ""),
    },
    "root": {
        "engine": (FOREIGN, HERS, "anna", WORD % "llm-engine-real.service"),
        "nested": (FOREIGN, HERS, "anna", WORD % "llm-engine-n\\x2d1.service"),
        "scope": (FOREIGN, HERS, "anna", WORD % "llm-engine-s.scope"),
        "by-hand": (FOREIGN, HERS, "anna", WORD % "bench.service"),
        "job": (FOREIGN, HERS, "anna", WORD % JOB),
        "below": (FOREIGN, HERS, "anna", WORD % "evil-1.service"),
        "as-his": (FOREIGN, HERS, "anna", WORD % "evil-2.service"),
        "as-job": (FOREIGN, HERS, "anna", WORD % "evil-3.service"),
        "bare": (FOREIGN, HERS, "anna", WORD % "llm-engine-fake.service"),
        "her-docker": (FOREIGN, HERS, "anna", WORD % f"docker-{ID}.scope"),
        "his-engine": (FOREIGN, HIS, "bert", WORD % "llm-engine-y.service"),
        "as-hers": (FOREIGN, HIS, "bert", WORD % "evil.service"),
        "her-session": (FOREIGN, "session-71.scope", "anna", ""),
        "her-sudo": (FOREIGN, "session-72.scope", "anna", ""),
        "his-session": (FOREIGN, "session-73.scope", "bert", ""),
        "docker": (FOREIGN, f"docker-{ID}.scope", "root", CONTAINER),
        "cgroupfs": (FOREIGN, "", "root", CONTAINER),
        "machine": (FOREIGN, "machine-web.scope", "root", "machine web"),
        "service": (YIELDING, "llm-engine-sys.service", "root", ""),
        "her-service": (YIELDING, "llm-engine-own.service", "anna", ""),
        "root-evil": (FOREIGN, "evil.service", "root", ""),
    },
}
CASES = [(asker, scene) for asker, scenes in EXPECTED.items() for scene in scenes]


@dataclass(frozen=True, slots=True)
class Played:
    """What each queue says of each scene, where the processes are, and the user ids."""

    found: dict[tuple[str, str], Belonging | None]
    paths: dict[str, str]
    uids: dict[str, int]


@pytest.fixture(scope="module")
def played(shared_container: Container) -> Played:
    """Play all the scenes and have every queue asked."""
    uids = {"root": 0}
    for name in ("anna", "bert"):
        shared_container.add_user(name, linger=True)
        uids[name] = int(shared_container.run(["id", "--user", name]).stdout)
    directory = shared_container.root / "srv/pids"
    directory.mkdir()
    directory.chmod(0o777)
    directory.with_name("be").write_text(BE)
    for scene in SCENES:
        play(shared_container, scene, uids)
    pids = {scene: int((directory / scene).read_text()) for scene in SCENES}
    found: dict[tuple[str, str], Belonging | None] = {}
    for asker, scenes in EXPECTED.items():
        said = answers(shared_container, asker, [pids[scene] for scene in scenes])
        found |= {(asker, scene): each for scene, each in zip(scenes, said, strict=True)}
    proc = shared_container.root / "proc"
    paths = {scene: (proc / f"{pid}/cgroup").read_text() for scene, pid in pids.items()}
    return Played(found, paths, uids)


def play(container: Container, scene: str, uids: dict[str, int]) -> None:
    """Start a scene, and wait until its process is where it wants to be."""
    user, options, to = SCENES[scene]
    run = options if options[0] == "systemd-run" else ["systemd-run", "--quiet", *options]
    if user != "root":
        run = [run[0], "--user", *run[1:]]
    command = [*run, "/bin/sh", "-e", "/srv/be", scene, to]
    behind = ["sh", "-c", '"$@" >/srv/pids/$0.log 2>&1 &', scene]
    container.run([*behind, *(word.format(**uids) for word in command)], user=user)
    eventually((container.root / "srv/pids" / scene).exists, f"{scene}, see its log beside it")


def answers(container: Container, user: str, pids: list[int]) -> list[Belonging | None]:
    return ask(
        lambda argv: container.run(["python3", *argv], user=user, env={"PYTHONPATH": PYTHONPATH}),
        *pids,
        system=user == "root",
        ours=[JOB],
        yielding=ENGINES,
    )


@pytest.mark.parametrize(("asker", "scene"), CASES, ids="-".join)
def test_it_is_whose_its_manager_says(played: Played, asker: str, scene: str) -> None:
    standing, unit, owner, note = EXPECTED[asker][scene]
    uids = played.uids
    expected = Belonging(standing, unit.format(**uids), uids[owner], note.format(**uids))
    assert played.found[asker, scene] == expected


def test_every_scene_is_asked_of_and_every_directory_is_called_what_it_should_not(
    played: Played,
) -> None:
    assert {scene for _, scene in played.found} == set(SCENES)
    for scene, (_, _, to) in SCENES.items():
        assert f"{to.format(**played.uids).removeprefix('..')}\n" in played.paths[scene]


def test_of_a_process_that_proc_hides_nothing_is_said_and_it_counts(
    shared_container: Container, played: Played
) -> None:
    pids = [
        int((shared_container.root / "srv/pids" / who).read_text())
        for who in ("engine", "his-engine")
    ]
    shared_container.run(["mount", "-o", "remount,hidepid=2", "/proc"])
    try:
        hers, his = answers(shared_container, "anna", pids)
    finally:
        shared_container.run(["mount", "-o", "remount,hidepid=0", "/proc"])
    assert hers == played.found["anna", "engine"]
    assert his == Belonging(FOREIGN, note=NO_PATH)


LINE = """
named=/sys/fs/cgroup/systemd; tree=name=systemd
[ -d $named ] || { named=/sys/fs/cgroup; tree=; }
cd "$named/$(sed -n "s,^[0-9]*:$tree:/,,p" /proc/self/cgroup)"
evil="x$(printf '\\r')0::/system.slice/llm-engine-sys.service"
mkdir -p "$evil"
echo $$ >"$evil/cgroup.procs"
echo $$ >/srv/pids/.line
mv /srv/pids/.line /srv/pids/line
exec sleep infinity
"""


def test_a_line_of_his_own_in_the_list_of_control_groups_takes_nobody_in(
    shared_container: Container, played: Played
) -> None:
    (shared_container.root / "srv/line").write_text(LINE)
    start = ["systemd-run", "--user", "--unit=liar", *DELEGATED, "sh", "-e", "/srv/line"]
    shared_container.run(start, user="anna")
    file = shared_container.root / "srv/pids/line"
    eventually(file.exists, "the line")
    for asker in ("root", "anna"):
        (found,) = answers(shared_container, asker, [int(file.read_text())])
        assert found
        assert (found.standing, found.uid) == (FOREIGN, played.uids["anna"])
