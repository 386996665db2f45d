"""Three verdicts of lint-units, put to the proof by really booting and shutting down."""

import json
from pathlib import Path
from typing import Any

from tests.harness.container import Container

CASES = Path(__file__).parents[1] / "cases" / "lint"
BOOTS = 3
ONCE = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
WANTED = "\n[Install]\nWantedBy=multi-user.target\n"
REQUIRED = "\n[Install]\nRequiredBy=multi-user.target\n"
TRIO = {
    "first.service": "[Unit]\nAfter=multi-user.target\n" + ONCE + WANTED,
    "second.service": "[Unit]\nAfter=first.service\n" + ONCE + WANTED,
}
FATAL = {
    "first.service": "[Unit]\nAfter=multi-user.target\n" + ONCE + REQUIRED,
    "second.service": "[Unit]\nAfter=first.service\n" + ONCE + REQUIRED,
}


def lint(container: Container, units: dict[str, str]) -> list[dict[str, Any]]:
    """Lint these files inside, before anything is installed."""
    there = container.root / "srv/units"
    there.mkdir()
    for name, text in units.items():
        (there / name).write_text(text)
    done = container.run(["sdqueue", "lint-units", "--format=json", "/srv/units"], check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert str(report["systemd_version"]) == container.version
    found: list[dict[str, Any]] = report["findings"]
    return found


def install(container: Container, units: dict[str, str], *enable: str) -> None:
    for name in units:
        container.run(["cp", f"/srv/units/{name}", "/etc/systemd/system/"])
    container.run(["systemctl", "daemon-reload"])
    if enable:
        container.run(["systemctl", "enable", *enable])


def active(container: Container, *names: str) -> set[str]:
    return {name for name in names if container.show(name, "ActiveState") == "active"}


def test_of_the_classic_trio_one_is_missing_after_each_boot(container: Container) -> None:
    (finding,) = [f for f in lint(container, TRIO) if f["rule"] == "ordering-cycle"]
    assert {job["job"] for job in finding["lost"]} == {f"{name}/start" for name in TRIO}
    install(container, TRIO, *TRIO)
    for _ in range(BOOTS):
        container.reboot()
        assert len(active(container, *TRIO)) == 1


def test_a_fix_that_is_proposed_makes_every_boot_complete(container: Container) -> None:
    (finding,) = [f for f in lint(container, TRIO) if f["rule"] == "ordering-cycle"]
    fix = finding["fixes"][0]
    assert fix["text"] == "remove After=multi-user.target"
    install(container, TRIO, *TRIO)
    file = container.root / "etc/systemd/system" / Path(fix["file"]).name
    lines = file.read_text().splitlines()
    del lines[fix["line"] - 1]
    file.write_text("\n".join(lines) + "\n")
    for _ in range(BOOTS):
        container.reboot()
        assert active(container, *TRIO) == set(TRIO)


def test_pid_1_refuses_the_target_of_a_fatal_cycle(container: Container) -> None:
    assert [f["severity"] for f in lint(container, FATAL)] == ["fatal"]
    install(container, FATAL, *FATAL)
    done = container.run(["systemctl", "isolate", "multi-user.target"], check=False)
    assert done.returncode != 0
    assert "Transaction order is cyclic" in done.stderr


def test_a_shutdown_cycle_is_met_at_shutdown_and_not_before(container: Container) -> None:
    names = ("ck.service", "sess.socket", "sess@.service", "sess-user.service")
    units = {name: (CASES / "52-stop-side-socket-user/units" / name).read_text() for name in names}
    assert "shutdown-cycle" in {f["rule"] for f in lint(container, units)}
    container.run(["mkdir", "-p", "/var/log/journal"])
    container.run(["journalctl", "--flush"])
    install(container, units)
    container.run(["systemctl", "start", "ck.service"])
    assert not cycles(container, "0")
    container.reboot()
    assert cycles(container, "-1")


def cycles(container: Container, boot: str) -> list[str]:
    said = container.journal(f"--boot={boot}", "_PID=1")
    return [entry["MESSAGE"] for entry in said if "ordering cycle" in str(entry["MESSAGE"])]
