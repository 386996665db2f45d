"""The manual and the code say the same: each thing that can be enumerated, in both directions."""

import ast
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from sdqueue.bus.interface import Arg, Interface
from sdqueue.cli import load
from sdqueue.cli.detail import DETAIL_KEYS
from sdqueue.cli.doctor import CHECKS
from sdqueue.cli.doctor.verdict import Verdict
from sdqueue.cli.exits import EXIT_STATUS
from sdqueue.cli.options import GLOBAL_GROUP, parser_for
from sdqueue.cli.overall import Health, Overall
from sdqueue.cli.rows import CLIENT_CODES
from sdqueue.cli.verbs import GLOBAL_OPTIONS, VERBS, Verb
from sdqueue.config import load as load_config
from sdqueue.controller.job_service import JOB_INTERFACE
from sdqueue.controller.lane_service import LANE_INTERFACE
from sdqueue.controller.lease_service import LEASE_INTERFACE
from sdqueue.controller.manager_service import INTERFACE
from sdqueue.controller.offering import FEATURES, JOBS, LANES, LEASES, NAME, PATH
from sdqueue.controller.permission import ACTIONS, PREFIX
from sdqueue.core.keys import JOB_KEYS, LANE_KEYS, OWNER_KEYS
from sdqueue.core.lease import LEASE_KEYS
from sdqueue.core.model import CODE_HELP, JobState
from sdqueue.core.owner import STANDING_HELP, USE_HELP, Use
from sdqueue.core.results import EXEC_STATUS
from sdqueue.core.spec import DEFAULT_LANES
from sdqueue.core.unit import RELIED_ON
from sdqueue.core.verdict import LANE_WORD_HELP
from sdqueue.jobfile import parse
from sdqueue.jobkeys import KEYS
from sdqueue.owners.detectors import DETECTORS
from sdqueue.settings import LANE_SETTINGS, NOT_FOR_ALL, QUEUE_SETTINGS, SUBTABLES
from sdqueue.slicekeys import SLICE_KEYS
from sdqueue.words import errors
from tests.harness.cli import Cli
from tests.harness.tools import needs

ROOT = Path(__file__).parents[2]
MAN = ROOT / "man"
PAGES = sorted(MAN.glob("*.[0-9]"))
_GLYPHS = {
    r"\-": "-", r"\e": "\\", r"\(aq": "'", r"\(dq": '"', r"\(ga": "`", r"\(ha": "^",
    r"\(ti": "~", r"\(->": "→", r"\&": "",
}  # fmt: skip
_ESCAPE = re.compile(r"\\f[BIRP]|\\\(..|\\[-e&]|\\\(->")


def plain(line: str) -> str:
    """Return a line of roff as it is read."""
    return _ESCAPE.sub(lambda found: _GLYPHS.get(found[0], ""), line)


class Page:
    """A manual page: its tagged paragraphs and its examples, by section and subsection."""

    def __init__(self, name: str) -> None:
        self.tags: dict[tuple[str, str], list[str]] = {}
        self.text: dict[tuple[str, str], str] = {}
        self.examples: dict[str, list[str]] = {}
        self._read(iter((MAN / name).read_text().splitlines()))

    def _read(self, lines: Iterator[str]) -> None:
        section, sub = "", ""
        for line in lines:
            if line.startswith(".SH "):
                section, sub = plain(line[4:]).strip('"'), ""
            elif line.startswith(".SS "):
                sub = plain(line[4:]).strip('"')
                self.tags.setdefault((section, sub), [])
            elif line == ".TP":
                self.tags.setdefault((section, sub), []).append(plain(next(lines)))
            elif line == ".EX":
                block = iter(lambda: next(lines), ".EE")
                self.examples.setdefault(section, []).append("\n".join(map(plain, block)) + "\n")
            else:
                self.text[section, sub] = f"{self.text.get((section, sub), '')} {plain(line)}"

    def subsections(self, section: str) -> list[str]:
        """Return the names of the subsections."""
        return [sub for at, sub in self.tags if at == section and sub]


MANUAL, JOB, TOML, EVENTS, BUS = map(
    Page, ("sdqueue.1", "sdqueue.job.5", "sdqueue.toml.5", "sdqueue-events.5", "org.sdqueue1.5")
)


def flags_in(tags: list[str]) -> set[str]:
    return {word for tag in tags for word in re.findall(r"(?<![\w-])--?[\w-]+", tag)}


# sdqueue(1) -------------------------------------------------------------------------------------


def test_every_verb_is_a_section_and_no_other_is() -> None:
    assert MANUAL.subsections("VERBS") == [verb.name for verb in VERBS]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_option_of_a_verb_is_in_its_section_and_no_other_is(verb: Verb) -> None:
    text = MANUAL.text["VERBS", verb.name]
    assert [alias for alias in verb.aliases if alias not in text] == []
    assert f"sdqueue {verb.name} {verb.usage.replace('…', '...')}".rstrip() in text
    if verb.name == "lint-units":
        return  # a page of its own
    parser = parser_for(verb)
    load(verb).add_arguments(parser)
    own = {flag for o in parser.options if o.group != GLOBAL_GROUP for flag in o.flags}
    assert flags_in(MANUAL.tags["VERBS", verb.name]) == own


def test_the_options_of_every_verb() -> None:
    assert flags_in(MANUAL.tags["OPTIONS", ""]) == set(GLOBAL_OPTIONS)


def test_states_reasons_and_exit_statuses() -> None:
    assert MANUAL.tags["STATES", ""] == list(JobState)
    assert MANUAL.tags["REASONS", ""] == [*CODE_HELP, *CLIENT_CODES]
    assert MANUAL.tags["EXIT STATUS", ""] == list(map(str, EXIT_STATUS))


def test_the_checks_of_doctor() -> None:
    assert MANUAL.tags["CHECKS OF DOCTOR", ""] == list(CHECKS)
    text = plain((MAN / "sdqueue.1").read_text())
    missing = [help_ for _, help_ in CHECKS.values() if help_[1:] not in text.replace("\n", " ")]
    assert missing == []
    assert all(key in MANUAL.text["CHECKS OF DOCTOR", ""] for key in Verdict._fields)


def test_the_keys_of_json() -> None:
    assert MANUAL.tags["JSON", "Keys of a job"] == list(JOB_KEYS)
    assert MANUAL.tags["JSON", "Keys of a lane"] == list(LANE_KEYS)
    assert MANUAL.tags["JSON", "Keys of an owner"] == list(OWNER_KEYS)
    assert MANUAL.tags["JSON", "Keys of a lease"] == list(LEASE_KEYS)
    assert MANUAL.tags["JSON", "Keys of show, beside these"] == list(DETAIL_KEYS)
    health = Health(running=False, version=None, halted="", trouble=[], notices=[], start="")
    overall = Overall("", False, health, {"running": 0}, [], [], [], 0)
    assert MANUAL.tags["JSON", "Keys of status"] == list(overall.as_json())
    assert [key for key in Health._fields if key not in MANUAL.text["JSON", "Keys of status"]] == []


@pytest.mark.parametrize(
    ("section", "table"),
    [("Keys of a lane", LANE_WORD_HELP), ("Keys of an owner", STANDING_HELP)],
    ids=["a lane's words", "standings"],
)
def test_the_words_of_lanes_and_owners(section: str, table: dict[str, str]) -> None:
    text = " ".join(MANUAL.text["JSON", section].split())
    told = {word: help_.split(":")[0].split(" `")[0] for word, help_ in table.items()}
    assert [word for word, help_ in told.items() if f"{word}, {help_}" not in text] == []


def test_the_environment_that_the_program_reads() -> None:
    asked: set[str] = set()
    files = [*(ROOT / "sdqueue/cli").glob("[!l]*.py"), ROOT / "sdqueue/bus/address.py"]
    for file in (*files, ROOT / "sdqueue/cli/listing.py", ROOT / "sdqueue/spool/layout.py"):
        asked |= set(re.findall(r"""env(?:iron)?(?:\.get\(|\[)"([A-Z_]+)\"""", file.read_text()))
    # Of everybody's: where home is, what the terminal is, what systemd tells its services.
    asked -= {"HOME", "TERM", "XDG_DATA_HOME", "JOURNAL_STREAM"}
    assert set(MANUAL.tags["ENVIRONMENT", ""]) - asked <= {"SDQUEUE_JOB"}
    assert asked <= set(MANUAL.tags["ENVIRONMENT", ""])


def test_the_examples_of_submitting_work(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    (tmp_path / "models.txt").write_text("a\nb\n")
    script = "".join(MANUAL.examples["EXAMPLES"][:2])
    commands = re.sub(r"(?m)^(?!\$ |    ).*\n", "", script).replace("$ ", "")
    run = f'sdqueue() {{ {" ".join(cli.argv())} "$@"; }}\nset -eo pipefail\n{commands}'
    done = subprocess.run(
        ["bash", "-c", run], env=cli.env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in script.splitlines() if not line.startswith(("$ ", " "))]
    assert done.stdout.splitlines() == [*said, "012-cpu-convert", "013-cpu-convert"]


def test_the_example_of_a_unit_is_the_one_that_is_tested() -> None:
    (text,) = (each for each in MANUAL.examples["EXAMPLES"] if each.startswith("[Service]"))
    lines = (ROOT / "units/examples/llm-engine@.service").read_text().splitlines()
    service = lines[lines.index("[Service]") :]
    assert text.splitlines() == [line for line in service if not line.startswith("#")]


# The files --------------------------------------------------------------------------------------


def test_every_header_key_and_its_example() -> None:
    assert [tag.split(":")[0] for tag in JOB.tags["KEYS", ""]] == [key.name for key in KEYS]
    assert [k.name for k in KEYS if f"# {k.name}: {k.example}" not in JOB.text["KEYS", ""]] == []
    assert JOB.tags["WHAT IS RUN", "How a run ends"] == list(map(str, EXEC_STATUS))


def test_every_variable_that_a_job_is_given() -> None:
    source = (ROOT / "sdqueue/core/unit.py").read_text()
    given = set(re.findall(r'^ +"([A-Z_]+)": ', source, re.MULTILINE)) & {
        "STATE_DIRECTORY", "SDQUEUE_JOB", "SDQUEUE_LANE", "SDQUEUE_ATTEMPT", "SDQUEUE_RUN",
    }  # fmt: skip
    assert set(JOB.tags["WHAT IS RUN", "Environment"]) == given


def test_what_a_dropin_must_leave_alone() -> None:
    text = JOB.text["DROP-INS FOR ADMINISTRATORS", ""]
    named = re.findall(r"(\w+)=", text.partition("belong")[0].partition("that apply.")[2])
    assert set(named) == {key for _, key in RELIED_ON}


@pytest.mark.parametrize("text", [*chain(*JOB.examples.values())])
def test_every_job_file_of_the_manual_is_without_fault(text: str) -> None:
    lanes = {lane.name: lane for lane in DEFAULT_LANES}
    found = parse("example", text.encode(), lanes=lanes)
    assert found.problems == ()
    if text.startswith("#!/bin/bash"):
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_the_job_that_remembers_measures_each_row_once_whatever_happens(tmp_path: Path) -> None:
    (text,) = JOB.examples["JOBS THAT REMEMBER"]
    measure = tmp_path / "measure"
    measure.write_text(
        '#!/bin/sh\necho "$1" >>log; [ "$1" != 16384 ] || [ -e well ] || exit 1; echo "$1"\n'
    )
    measure.chmod(0o755)
    (tmp_path / "state").mkdir()
    env = {"STATE_DIRECTORY": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}

    def attempt() -> int:
        return subprocess.run(["bash", "-c", text], env=env, cwd=tmp_path, check=False).returncode

    done_if = parse("x", text.encode(), lanes={lane.name: lane for lane in DEFAULT_LANES}).spec
    assert done_if
    verified = ["bash", "-c", done_if.done_if]
    assert attempt() == 1
    assert subprocess.run(verified, env=env, check=False).returncode != 0
    (tmp_path / "well").touch()
    assert attempt() == 0
    assert subprocess.run(verified, env=env, check=False).returncode == 0
    assert (tmp_path / "log").read_text().split() == ["4096", "8192", "16384", "16384", "32768"]


def test_every_setting_and_the_example_of_the_configuration() -> None:
    def keys(section: str) -> list[str]:
        return [tag.split(" = ")[0] for tag in TOML.tags[section, ""]]

    assert keys("SETTINGS OF THE QUEUE") == [each.key for each in QUEUE_SETTINGS]
    tables = [f"[lane.NAME.{name}]" for name in SUBTABLES]
    assert keys("SETTINGS OF A LANE") == [*(each.key for each in LANE_SETTINGS), *tables]
    slice_text = TOML.text["SETTINGS OF A LANE", "Settings of the slice"]
    named = set(re.findall(r"\b[A-Z][A-Za-z]{3,}[a-z]\w*|\bTasksMax\b", slice_text))
    assert named - {"These", "They"} == set(SLICE_KEYS)
    assert all(key in TOML.text["SETTINGS OF A LANE", ""] for key in NOT_FOR_ALL)
    (example,) = TOML.examples["EXAMPLE"]
    config, problems = load_config([("example", example)])
    assert problems == ()
    assert config.lanes["cpu"].slots == 4


def test_every_detector_and_what_a_user_does() -> None:
    section = "WHO USES A LANE", ""
    rows = [f"{detector.name} ({detector.setting})" for detector in DETECTORS]
    assert TOML.tags[section] == [*rows, *Use]
    text = " ".join(TOML.text[section].split())
    told = [*(detector.help for detector in DETECTORS), *USE_HELP.values()]
    assert [help_ for help_ in told if help_[1:] not in text] == []


def _words_logged() -> set[str]:
    """Find the events that the code writes: what is given to Log() and to the journal."""
    found: set[str] = set()
    for file in [
        *(ROOT / "sdqueue/core").glob("*.py"),
        *(ROOT / "sdqueue/controller").glob("*.py"),
    ]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in ("Log", "write"):
                    found |= _texts(node.args[0])
            elif isinstance(node, ast.Tuple) and ast.unparse(node).startswith("(JobState."):
                # (state, word, memory or note): where a run's end takes a job.
                found |= _texts(node.elts[1])
    return found


def _texts(node: ast.expr) -> set[str]:
    if isinstance(node, ast.IfExp):
        return _texts(node.body) | _texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_every_event_that_is_written_and_no_other() -> None:
    assert set(EVENTS.tags["EVENTS", ""]) == _words_logged()
    for line in EVENTS.examples["EXAMPLE"][0].splitlines():
        event = json.loads(line)
        assert event["event"] in EVENTS.tags["EVENTS", ""]
        assert list(event)[:6] == EVENTS.tags["KEYS OF EVERY EVENT", ""]


INTERFACES = {
    "THE MANAGER": INTERFACE,
    "LANES": LANE_INTERFACE,
    "JOBS": JOB_INTERFACE,
    "LEASES": LEASE_INTERFACE,
}
_EMITS = {"true": ", announced", "const": ", constant", "false": ""}


@pytest.mark.parametrize(("section", "interface"), INTERFACES.items(), ids=list(INTERFACES))
def test_every_member_of_a_bus_interface_with_its_types(section: str, interface: Interface) -> None:
    def spelled(arguments: Iterable[Arg]) -> str:
        return ", ".join(f"{each.signature} {each.name}" for each in arguments)

    def tags(sub: str) -> list[str]:
        return BUS.tags.get((section, sub), [])

    assert tags("Methods") == [
        f"{each.name}({spelled(each.takes)}) → ({spelled(each.gives)})"
        for each in interface.methods
    ]
    assert tags("Properties") == [
        f"{each.name} ({each.signature}{_EMITS[each.emits]})" for each in interface.properties
    ]
    assert tags("Signals") == [f"{each.name}({spelled(each.args)})" for each in interface.signals]
    assert interface.name in BUS.text["SYNOPSIS", ""]


def test_every_name_on_the_bus() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, Exception)]
    assert set(BUS.tags["ERRORS", ""]) == {kind.bus_name for kind in kinds}  # type: ignore[attr-defined]
    words = set(re.findall(r"\w+", BUS.text["THE MANAGER", "Properties"]))
    assert [word for word in FEATURES if word not in words] == []
    for word in (NAME, PATH, f"{LANES}/LANE", f"{JOBS}/JOB", f"{LEASES}/LEASE"):
        assert word in BUS.text["SYNOPSIS", ""].split()
    assert BUS.tags["ACCESS", ""] == [PREFIX + action for action in ACTIONS]


# All pages --------------------------------------------------------------------------------------


@needs("mandoc")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_mandoc_has_nothing_to_say(page: Path) -> None:
    done = subprocess.run(["mandoc", "-T", "lint", str(page)], capture_output=True, text=True)
    assert (done.stdout + done.stderr).strip() == ""


@needs("man")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_shows_it_without_a_warning(page: Path) -> None:
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_refers_to_is_there(page: Path) -> None:
    ours = {f"{each.stem}({each.suffix[1:]})" for each in PAGES}
    text = plain(page.read_text().replace(" (", "(")).replace(".BR ", "")
    named = set(re.findall(r"\b((?:sdqueue|org\.sdqueue1)[\w.-]*\([1-8]\))", text))
    assert named <= ours
