"""`systemctl enable`, simulated: rule by rule. That it agrees with systemctl is asked elsewhere."""

import pytest

from sdqueue.unitfile.enable import Enabled, enable
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath import Added, Tree

E, L = "/etc/systemd/system", "/usr/lib/systemd/system"


def run(files: dict[str, str], *names: str, version: int = 257) -> Enabled:
    """Enable units of a search path that only exists here; values are [Install] sections."""
    added = [
        Added(path, text=text[3:])
        if text.startswith("-> ")
        else Added(path, data=f"[Install]\n{text}\n".encode() if text else b"")
        for path, text in files.items()
    ]
    tree = Tree("", (E, L), tuple(added))
    return enable(names, tree, Host(), config_dir=E, version=version)


def made(done: Enabled) -> dict[str, str]:
    return {each.path.removeprefix(f"{E}/"): each.text for each in done.links}


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("WantedBy=t.target", "t.target.wants/a.service"),
        ("RequiredBy=t.target", "t.target.requires/a.service"),
        ("UpheldBy=t.target", "t.target.upholds/a.service"),
        ("Alias=b.service", "b.service"),
        ("Alias=t.target.wants/a.service", "t.target.wants/a.service"),
        ("WantedBy=%p.target", "a.target.wants/a.service"),
        ('WantedBy="t.target"', "t.target.wants/a.service"),
        ("WantedBy=x.target\nWantedBy=\nWantedBy=t.target", "t.target.wants/a.service"),
    ],
)
def test_a_rule_makes_a_link_to_the_file(rule: str, path: str) -> None:
    assert made(run({f"{L}/a.service": rule}, "a.service")) == {path: f"{L}/a.service"}


def test_a_link_knows_the_line_that_asks_for_it() -> None:
    done = run({f"{L}/a.service": "Alias=b.service\nWantedBy=x.target y.target"}, "a.service")
    assert [each.place and each.place.line for each in done.links] == [2, 3, 3]


def test_upheld_by_is_unknown_before_254() -> None:
    assert made(run({f"{L}/a.service": "UpheldBy=t.target"}, "a.service", version=253)) == {}


def test_also_enables_others_with_their_own_rules_and_their_failure_is_a_warning() -> None:
    files = {f"{L}/a.service": "Also=b.service gone.service", f"{L}/b.service": "WantedBy=t.target"}
    done = run(files, "a.service")
    assert made(done) == {"t.target.wants/b.service": f"{L}/b.service"}
    assert [p.severity for p in done.problems if "gone" in p.message] == ["warning"]


def test_a_template_is_enabled_as_its_default_instance() -> None:
    files = {f"{L}/a@.service": "WantedBy=t.target\nDefaultInstance=x"}
    assert made(run(files, "a@.service")) == {"t.target.wants/a@x.service": f"{L}/a@.service"}
    assert made(run(files, "a@y.service")) == {"t.target.wants/a@y.service": f"{L}/a@.service"}


def test_a_template_without_instance_is_wanted_by_templates_only() -> None:
    done = run({f"{L}/a@.service": "WantedBy=t.target u@.target u@1.target"}, "a@.service")
    assert list(made(done)) == ["u@.target.wants/a@.service", "u@1.target.wants/a@.service"]
    assert [str(problem.severity) for problem in done.problems].count("error") == 1


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no such unit file"),
        ({f"{E}/a.service": "-> /dev/null"}, "masked"),
        ({f"{E}/a.service": ""}, "masked"),
        ({f"{L}/a.service": "WantedBy=t.target\n[broken"}, "without ']'"),
        ({f"{L}/a.service": "Also=nonsense"}, "not a valid unit name"),
        ({f"{L}/a.service": "Alias=b.socket"}, "types differ"),
        ({f"{L}/a.service": "Alias=b.wants/a.service"}, "directory of a unit"),
        ({f"{L}/a.service": "WantedBy=nonsense"}, "not a valid unit name"),
        ({f"{L}/a.service": "WantedBy=%Q.target"}, "means nothing here"),
        ({f"{L}/a.service": "Alias=b.service", f"{E}/b.service": "x"}, "there already"),
        ({f"{E}/a.service": "-> b.service", f"{L}/b.service": "Alias=c.service"}, "alias"),
    ],
)
def test_what_can_not_be_enabled_is_said(files: dict[str, str], said: str) -> None:
    done = run(files, "a.service")
    assert said in done.problems[0].message
    assert done.problems[0].severity == "error"


def test_a_target_that_is_not_there_is_a_warning_at_its_line() -> None:
    done = run({f"{L}/a.service": "WantedBy=t.target"}, "a.service")
    assert [str(p) for p in done.problems] == [
        f"{L}/a.service:2: warning: WantedBy=t.target: there is no such unit"
    ]


def test_a_link_that_is_there_already_is_said_to_be() -> None:
    files = {f"{L}/a.service": "WantedBy=t.target", f"{L}/t.target": "x="}
    files[f"{E}/t.target.wants/a.service"] = f"-> {L}/a.service"
    assert [each.existed for each in run(files, "a.service").links] == [True]


def test_a_file_from_outside_is_linked_in_first() -> None:
    files = {f"{L}/a.service": "-> /opt/a.service", "/opt/a.service": "WantedBy=t.target"}
    assert made(run(files, "a.service")) == {
        "a.service": "/opt/a.service",
        "t.target.wants/a.service": "/opt/a.service",
    }


def test_drop_ins_of_the_name_and_its_template_have_install_rules_too() -> None:
    files = {f"{L}/b-c@.service": "Alias=x@.service"}
    files |= {f"{E}/b-c@.service.d/x.conf": "WantedBy=t.target"}
    files |= {f"{E}/b-@.service.d/y.conf": "WantedBy=u.target"}
    assert list(made(run(files, "b-c@1.service"))) == [
        "x@1.service",
        "t.target.wants/b-c@1.service",
    ]


def test_units_that_say_nothing_of_enabling_are_named() -> None:
    assert run({f"{L}/a.service": "x=y"}, "a.service").without_rules == ("a.service",)
