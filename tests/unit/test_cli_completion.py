"""Completion: what may stand where, and bash's script asked as bash asks it."""

import subprocess
from pathlib import Path

import pytest

from sdqueue.cli.completion import SCRIPTS, VALUES, WORDS
from sdqueue.cli.verbs import VERBS
from tests.harness.cli import Cli
from tests.harness.tools import require_programs


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli(tmp_path)
    made.queue("1-gpu-a")
    made.queue("it's b", "true", "LANE: cpu", state="running")
    made.queue("9-gpu-done", state="done")
    unit = tmp_path / "config/systemd/user/publish.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("")
    return made


def found(cli: Cli, *words: str) -> list[str]:
    done = cli.here("completion", "--complete=fish", "--", "--user", *words)
    assert done.status == 0, done.err
    return [line.split("\t")[0] for line in done.lines]


def test_every_kind_of_word_that_tables_name_can_be_completed() -> None:
    kinds = {verb.words for verb in VERBS} | set(VALUES.values())
    assert kinds <= set(WORDS)


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("su",), ["submit"]),
        (("--sy",), ["--system"]),
        (("--no-pager", "wa"), ["wait"]),
        (("show", ""), ["it's b", "1-gpu-a", "9-gpu-done"]),
        (("why", ""), ["1-gpu-a"]),
        (("cancel", "it"), ["it's b"]),
        (("--no-legend", "pause", ""), ["cpu", "gpu", "net"]),
        (("submit", "--lane", "g"), ["gpu"]),
        (("submit", "--lane=g"), ["--lane=gpu"]),
        (("submit", "--lane", "=", "g"), ["--lane=gpu"]),
        (("submit", "--retry"), ["--retry-delay"]),
        (("submit", "--on-success", "pub"), ["publish.service"]),
        (("submit", "--after", "9"), ["9-gpu-done"]),
        (("list", "--json=s"), ["--json=short"]),
        (("list", "--state", "pa"), ["parked"]),
        (("submit", "--script", ""), [":files"]),
        (("submit", "--", "x"), [":files"]),
        (("check", ""), [":files"]),
        (("is-free", "g"), ["gpu"]),
        (("hold", "n"), ["net"]),
        (("hold", "gpu", "--", ""), [":files"]),
        (("adopt", "n"), ["net"]),
        (("adopt", "pub"), ["publish.service"]),
        (("completion", "z"), ["zsh"]),
        (("nonsense", ""), []),
        (("",), [verb.name for verb in VERBS]),
    ],
    ids=" ".join,
)
def test_what_may_stand_for_the_last_word(
    cli: Cli, words: tuple[str, ...], some: list[str]
) -> None:
    assert found(cli, *words) == some


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_accepts_its_script(cli: Cli, shell: str) -> None:
    script = cli.here("completion", shell).out
    require_programs(shell)
    checked = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_bash_completes_through_its_script(cli: Cli, tmp_path: Path) -> None:
    program = tmp_path / "bin/sdqueue"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(cli.argv())} "$@"\n')
    program.chmod(0o755)
    script = cli.here("completion", "bash").out
    ask = f"""{script}
compopt() {{ echo compopt "$@"; }}
answers() {{ _sdqueue; printf '%s\\n' "${{COMPREPLY[@]}}"; }}
COMP_WORDS=(sdqueue --user submit --lane = n); COMP_CWORD=5; answers
COMP_WORDS=(sdqueue --user show it); COMP_CWORD=3; answers
COMP_WORDS=(sdqueue check ''); COMP_CWORD=2; _sdqueue; echo "${{#COMPREPLY[@]}}"
"""
    env = cli.env | {"PATH": f"{program.parent}:{cli.env['PATH']}"}
    said = subprocess.run(["bash"], input=ask, env=env, text=True, capture_output=True)
    assert said.stdout.splitlines() == ["net", """'it'"'"'s b'""", "compopt -o default", "0"]


def test_no_shell_or_an_unknown_one_is_refused(cli: Cli) -> None:
    assert cli.here("completion").status == 2
    assert "bash, zsh, fish" in cli.here("completion", "csh").err
