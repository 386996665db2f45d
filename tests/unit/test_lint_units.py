"""The verb lint-units: arguments, exit statuses, every format, hostile input; no systemd needed."""

import json
import os
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from sdqueue.cli import main
from sdqueue.cli.lint_manual import manual
from sdqueue.cli.lint_units import OPTIONS
from sdqueue.core.unit import RELIED_ON
from sdqueue.lint.finding import SEVERITIES
from sdqueue.lint.formats import FORMATS
from sdqueue.lint.rules import BY_NAME
from sdqueue.unitbase import BASES, facts

CASES = Path(__file__).parents[1] / "cases"
BASE = str(CASES / "rules" / "base")
TRIO = str(CASES / "rules" / "ordering-cycle" / "bad" / "units")
CLEAN = str(CASES / "rules" / "ordering-cycle" / "good" / "units")
MANUAL = Path(__file__).parents[2] / "man" / "sdqueue-lint-units.1"
SERVICE = "[Service]\nExecStart=/bin/true\n"
WANTED = "\n[Install]\nWantedBy=multi-user.target\n"


def lint(*words: str, base: str = BASE) -> int:
    return main(["lint-units", "--root", base, *words])


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Any:
    """What the last call printed."""
    return lambda: capsys.readouterr().out


def as_json(said: Any, *words: str) -> dict[str, Any]:
    said()
    lint("--format", "json", *words)
    value: dict[str, Any] = json.loads(said())
    return value


def test_the_exit_status_says_whether_there_is_something_as_bad_as_fail_on(tmp_path: Path) -> None:
    assert lint(CLEAN) == 0
    assert lint(TRIO) == 1
    assert lint("--fail-on", "fatal", TRIO) == 0
    assert lint("--fail-on", "info", CLEAN) == 0
    assert lint(str(tmp_path / "nothing.service")) == 2
    assert lint(TRIO, base=str(tmp_path / "no-root")) == 2
    assert lint("--ignore", "no-such-rule", TRIO) == 2
    assert lint("--explain", "no-such-rule") == 2
    assert main(["lint-units", "--base", "no-such-base", TRIO]) == 2
    assert main(["lint-units", "--base", "debian-12", "--root", BASE, TRIO]) == 2
    assert main(["lint-units", "--no-such-option"]) == 2


def test_a_cycle_is_printed_edge_by_edge_with_odds_and_fixes(said: Any) -> None:
    lint(TRIO)
    out = said()
    assert out.startswith("error[ordering-cycle] a9-jobs.service will not be started at some boots")
    rows = [line.split() for line in out.splitlines()[1:4]]
    assert [row[0] for row in rows] == [
        "a9-jobs.service",
        "a9-telemetry.service",
        "multi-user.target",
    ]
    assert [row[2] for row in rows] == [row[0] for row in (*rows[1:], rows[0])]
    assert rows[0][3].endswith("/a9-jobs.service:3")
    assert "lost at boot: a9-jobs.service " in out
    assert "fix: remove After=multi-user.target (" in out


def test_json_has_the_keys_that_the_manual_describes(said: Any) -> None:
    value = as_json(said, TRIO)
    assert set(value) == {"version", "systemd_version", "base", "findings", "unknown"}
    assert (value["version"], value["systemd_version"], value["base"]) == (1, 257, BASE)
    (found,) = value["findings"]
    assert found["rule"] in BY_NAME
    assert found["severity"] in SEVERITIES
    assert {edge["edge"] for edge in found["cycle"]} == {"After"}
    assert {edge["origin"] for edge in found["cycle"]} == {"file", "default"}
    assert all(os.path.exists(edge["file"]) for edge in found["cycle"])
    assert sum(job["p_deleted"] for job in found["lost"]) == pytest.approx(1.0)
    assert all(job["p_lost"] >= job["p_deleted"] for job in found["lost"])
    assert {fix["breaks"] for fix in found["fixes"]} == {"alone"}


def test_the_same_files_give_the_same_report_and_another_seed_other_odds(said: Any) -> None:
    first, again = as_json(said, TRIO), as_json(said, TRIO)
    other = as_json(said, "--seed", "2", TRIO)
    assert first == again
    assert first["findings"][0]["lost"] != other["findings"][0]["lost"]


def test_json_is_also_what_the_global_option_asks_for(said: Any) -> None:
    lint("--json", CLEAN)
    assert json.loads(said())["findings"] == []


def test_sarif_names_rule_place_and_flow(said: Any) -> None:
    lint("--format", "sarif", TRIO)
    value = json.loads(said())
    assert value["version"] == "2.1.0"
    (run,) = value["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == run["tool"]["driver"]["rules"][0]["id"] == "ordering-cycle"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 3


def test_github_commands_are_one_line_each(said: Any) -> None:
    lint("--format", "github", TRIO)
    lines = said().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("::error file=")
    assert ",line=3,title=ordering-cycle::a9-jobs.service" in lines[0]


def test_dot_draws_the_cycle_in_the_order_of_running(said: Any) -> None:
    lint("--format", "dot", TRIO)
    out = said()
    assert '"a9-telemetry.service" -> "a9-jobs.service" [color="#c0392b"' in out
    assert '"a9-jobs.service" -> "multi-user.target" [color="#c0392b"' in out


def test_svg_is_well_formed_and_shows_every_unit_of_the_cycle_inside_the_picture(said: Any) -> None:
    lint("--format", "svg", TRIO)
    root = ElementTree.fromstring(said())
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    texts = {node.text for node in root.iter() if node.tag.endswith("}text")}
    assert {"a9-jobs.service", "a9-telemetry.service", "multi-user.target"} <= texts
    for box in (node for node in root.iter() if node.tag.endswith("}rect")):
        x, y = float(box.get("x", -1)), float(box.get("y", -1))
        assert 0 <= x <= x + float(box.get("width", 0)) <= width
        assert 0 <= y <= y + float(box.get("height", 0)) <= height


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_prints_a_clean_report_too(name: str) -> None:
    assert lint("--format", name, CLEAN) == 0


def test_only_what_is_enabled_is_started(tmp_path: Path) -> None:
    (tmp_path / "a.service").write_text(SERVICE + WANTED + "\n[Unit]\nAfter=b.service\n")
    (tmp_path / "b.service").write_text(SERVICE + WANTED + "\n[Unit]\nAfter=multi-user.target\n")
    assert lint(str(tmp_path)) == 1
    assert lint("--enable", "b.service", str(tmp_path)) == 0
    assert lint("--mask", "a.service", str(tmp_path)) == 0


def test_the_default_target_decides_what_is_started(tmp_path: Path) -> None:
    (tmp_path / "late.service").write_text(SERVICE + WANTED + "[Unit]\nAfter=graphical.target\n")
    assert lint(str(tmp_path)) == 0
    assert lint("--default-target", "graphical.target", str(tmp_path)) == 1


def test_what_was_there_before_is_not_reported_unless_all_is_asked_for(tmp_path: Path) -> None:
    units = tmp_path / "usr/lib/systemd"
    shutil.copytree(f"{BASE}/usr/lib/systemd", units, symlinks=True)
    wants = units / "system/multi-user.target.wants"
    wants.mkdir()
    for file in Path(TRIO).iterdir():
        (units / "system" / file.name).write_text(file.read_text())
        (wants / file.name).symlink_to(f"../{file.name}")
    new = tmp_path / "new.service"
    new.write_text(SERVICE + WANTED)
    assert lint(str(new), base=str(tmp_path)) == 0
    assert lint("--all", str(new), base=str(tmp_path)) == 1
    assert lint(base=str(tmp_path)) == 1


def test_a_file_that_is_installed_already_is_looked_at_where_it_lies(tmp_path: Path) -> None:
    etc = tmp_path / "etc/systemd/system"
    etc.mkdir(parents=True)
    shutil.copytree(f"{BASE}/usr", tmp_path / "usr", symlinks=True)
    for file in Path(TRIO).iterdir():
        (etc / file.name).write_text(file.read_text())
    assert lint(*(str(etc / name) for name in os.listdir(etc)), base=str(tmp_path)) == 1
    assert lint(str(etc), base=str(tmp_path)) == 1


def test_a_comment_with_a_reason_silences_a_rule_in_its_file(tmp_path: Path, said: Any) -> None:
    text = SERVICE + WANTED + "[Unit]\nAfter=multi-user.target\n"
    (tmp_path / "a.service").write_text(text)
    assert lint("--fail-on", "warning", str(tmp_path)) == 1
    reason = "# sdqueue-lint: ignore after-default-target nothing follows it, ever\n"
    (tmp_path / "a.service").write_text(reason + text)
    assert lint("--fail-on", "info", str(tmp_path)) == 0
    (tmp_path / "a.service").write_text("# sdqueue-lint: ignore after-default-target\n" + text)
    assert {one["rule"] for one in as_json(said, str(tmp_path))["findings"]} == {
        "after-default-target",
        "bad-ignore",
    }


def test_hostile_files_are_findings_and_never_hang(tmp_path: Path, said: Any) -> None:
    """Nothing that isn't a file is opened, and what is too large isn't read."""
    os.mkfifo(tmp_path / "fifo.service")
    (tmp_path / "loop.service").symlink_to("loop2.service")
    (tmp_path / "loop2.service").symlink_to("loop.service")
    (tmp_path / "gone.service").symlink_to("/nonexistent")
    (tmp_path / "dir.service").mkdir()
    (tmp_path / "big.service").write_text("a" * 10_000_000)
    (tmp_path / "latin.service").write_bytes(b"[Unit]\nDescription=\xe9t\xe9\n" + SERVICE.encode())
    (tmp_path / "nul.service").write_bytes(b"[Service]\nExecStart=/bin/true\0x\n")
    (tmp_path / "t@.service").write_text(SERVICE + WANTED)
    (tmp_path / "README").write_text("hello")
    (tmp_path / "x.service.d").mkdir()
    os.mkfifo(tmp_path / "x.service.d" / "a.conf")
    value = as_json(said, str(tmp_path))
    about = {Path(one["file"]).name for one in value["findings"] if one["rule"] == "bad-file"}
    assert {"fifo.service", "gone.service", "dir.service", "big.service", "latin.service"} <= about
    assert "nul.service" in about
    assert any("a.conf is for no unit" in text for text in value["unknown"])
    assert any("loop" in one["unit"] for one in value["findings"])
    assert any("t@.service is a template" in text for text in value["unknown"])


def test_two_files_of_one_name_are_said(tmp_path: Path, said: Any) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.service").write_text(SERVICE)
    value = as_json(said, *(str(tmp_path / folder / "a.service") for folder in ("one", "two")))
    assert "stands in for" in value["findings"][0]["message"]


def test_what_can_not_be_known_is_said(tmp_path: Path, said: Any) -> None:
    (tmp_path / "a.service").write_text(SERVICE + WANTED + "[Unit]\nAfter=elsewhere.service\n")
    assert any("elsewhere.service" in text for text in as_json(said, str(tmp_path))["unknown"])
    newer = as_json(said, "--systemd-version", "299", str(tmp_path))["unknown"]
    assert any("299 is newer" in text for text in newer)


@pytest.mark.parametrize("base", BASES)
def test_a_named_base_has_units_and_nothing_to_find(base: str) -> None:
    assert len(facts(base).files) > 100
    assert main(["lint-units", "--base", base, "--fail-on", "info"]) == 0
    assert main(["lint-units", "--base", base, "--fail-on", "info", "--user"]) == 0
    assert main(["lint-units", "--base", base, TRIO, "--default-target", "multi-user.target"]) == 1


def test_nothing_is_left_behind_by_a_named_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    main(["lint-units", "--base", "debian-12", TRIO])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("section", "key"), RELIED_ON)
def test_what_a_dropin_must_leave_alone(section: str, key: str, tmp_path: Path, said: Any) -> None:
    (tmp_path / "sdqueue-job-.service.d").mkdir()
    (tmp_path / "sdqueue-job-.service.d/x.conf").write_text(f"[{section}]\n{key}=no\n")
    assert lint(str(tmp_path)) == 1
    assert f"rest on {key}=" in said()


@pytest.mark.parametrize("rule", BY_NAME)
def test_every_rule_explains_itself(rule: str, said: Any) -> None:
    assert lint("--explain", rule) == 0
    out = said()
    assert out.startswith(rule)
    assert "Why it matters" in out


def test_the_manual_is_what_the_tables_make_it() -> None:
    """Mend with: python -m sdqueue.cli.lint_manual > man/sdqueue-lint-units.1"""
    assert MANUAL.read_text() == manual()
    text = MANUAL.read_text().replace("\\-", "-")
    for word in (*OPTIONS, *FORMATS, *BY_NAME, *BASES):
        assert word in text
    for prose in ("What it does", "Why it matters", "Source"):
        assert f".B {prose}\n.nf" not in text
