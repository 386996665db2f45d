"""The unit files of Debian packages against systemd: enabled one by one and in groups.

    python tests/soak/debian_corpus.py [--versions 252,257,262] [--packages N] [--groups N]
                                       [--findings]

Downloads the packages (never installs them) with this machine's apt sources into the test cache and
takes their unit files out. For each package, and then for groups of packages, the units lie on the
stock tree of each version and are enabled with `systemctl --root`. Then the graph, the jobs and
what may be lost must be systemd's. With --findings also what lint-units' rules find in them.
Exit status 1 if there was a disagreement.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "oracle"), str(HERE.parents[2])]

from agreement import Bench, agree  # noqa: E402
from graph_oracle import Systemd  # noqa: E402

from tests.harness import images  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sdqueue-tests/corpus"
STOCK, ETC = "usr/lib/systemd/system", "etc/systemd/system"
PROBE = "zzprobe.slice"
TARGET = "default.target"
RUN = "import sys; from sdqueue.cli import main; sys.exit(main())"
LINT = [sys.executable, "-c", RUN, "lint-units", "--format", "json"]
PROGRESS_EVERY = 50
GROUP_SIZES = (3, 8, 25)
PACKAGES = (HERE.parent / "debian_packages.txt").read_text().split()


def main() -> int:
    """Play the corpus and tell what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--versions", default="252,257,262")
    parser.add_argument("--packages", type=int, default=len(PACKAGES))
    parser.add_argument("--groups", type=int, default=12)
    parser.add_argument("--findings", action="store_true", help="print what the rules find, too")
    wish = parser.parse_args()
    corpus = fetch(PACKAGES[: wish.packages])
    print(f"{len(corpus)} packages with {sum(map(len, corpus.values()))} unit files", flush=True)
    if wish.findings:
        findings(corpus)
    bad = 0
    for version in filter(None, wish.versions.split(",")):
        if missing := images.missing(version):
            print(f"{version}: can't: {missing}")
            continue
        bad += play(version, corpus, wish.groups)
    return 1 if bad else 0


def fetch(packages: list[str]) -> dict[str, list[str]]:
    """Return the unit files of each package that has any, downloading what is not there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[str]] = {}
    lists_updated = False
    for package in packages:
        at = CACHE / package
        if not at.exists():
            if not lists_updated:
                _apt("update")
                lists_updated = True
            _unpack(package, at)
        units = sorted(
            path.name
            for place in ("lib/systemd/system", STOCK, ETC)
            for path in (at / place).glob("*.*")
            if path.suffix != ".d" and (path.is_file() or path.is_symlink())
        )
        if units:
            found[package] = units
    return found


def _apt(*argv: str, cwd: Path | None = None) -> bool:
    """Run apt-get with lists of our own, on this machine's Debian sources."""
    state = CACHE / ".apt"
    for directory in (state / "lists/partial", state / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    sources = state / "sources.list"
    suite = images.SUITES["252"]
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    sources.write_text(f"deb [signed-by={keys}] {images.mirror()} {suite} main\n")
    options = {
        "Dir::State::lists": state / "lists",
        "Dir::Cache": state / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Acquire::Check-Valid-Until": "false",
        "APT::Sandbox::User": "root",
    }
    given = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    done = subprocess.run(
        ["apt-get", "-q", *given, *argv], cwd=cwd, capture_output=True, text=True, check=False
    )
    return done.returncode == 0


def _unpack(package: str, at: Path) -> None:
    """Put the unit files of a package below `at`, nothing at all where there is no such package."""
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as work,
        tempfile.TemporaryDirectory(dir=CACHE) as to,
    ):
        if _apt("download", package, cwd=Path(work)):
            for deb in Path(work).glob("*.deb"):
                data = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True)
                wanted = [
                    f"./{place}*" for place in ("lib/systemd/system/", STOCK + "/", ETC + "/")
                ]
                untar = ["tar", "-x", "--wildcards", "--no-same-owner", "-C", to, *wanted]
                subprocess.run(untar, input=data.stdout, capture_output=True, check=False)
        shutil.copytree(to, at, symlinks=True)


def findings(corpus: dict[str, list[str]]) -> None:
    """Print what lint-units' rules find in each package on a plain Debian 12, and the sums."""
    sums = Counter[str]()
    for package in corpus:
        places = (CACHE / package / place for place in ("lib/systemd/system", STOCK, ETC))
        argv = [*LINT, "--base", "debian-12", *(str(place) for place in places if place.is_dir())]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if not done.stdout.startswith("{"):
            print(f"{package}: can't be looked at: {done.stderr[-300:]}")
            continue
        for found in json.loads(done.stdout)["findings"]:
            sums[f"{found['severity']}[{found['rule']}]"] += 1
            print(f"{package}: {found['severity']}[{found['rule']}] {found['message']}")
    what = ", ".join(f"{count} {rule}" for rule, count in sums.most_common())
    print(f"findings in {len(corpus)} packages: {what or 'none'}", flush=True)


def play(version: str, corpus: dict[str, list[str]], groups: int) -> int:
    """Examine each package alone and some groups of them; return how many disagreed."""
    root = images.root_of(version)
    bench = Bench(Systemd(None if str(root) == "/" else root), TARGET, PROBE, (ETC, STOCK))
    chance = random.Random(int(version))
    sets = [[package] for package in corpus]
    sets += [
        chance.sample(list(corpus), min(len(corpus), GROUP_SIZES[i % len(GROUP_SIZES)]))
        for i in range(groups)
    ]
    sets.append(list(corpus))
    bad, begun, results = 0, time.monotonic(), Counter[str]()
    for packages in sets:
        with installed(root, packages, corpus) as tree:
            found, verdict = examine(bench, tree)
        results[verdict] += 1
        if found:
            bad += 1
            name = packages[0] if len(packages) == 1 else f"{len(packages)}: {packages}"
            print(f"{version} {name}: {found[:4]} ({len(found)} lines)", flush=True)
        if sum(results.values()) % PROGRESS_EVERY == 0:
            print(f"{version}: {sum(results.values())} of {len(sets)} sets", flush=True)
    took = time.monotonic() - begun
    what = ", ".join(f"{count} {word}" for word, count in results.most_common())
    print(f"{version}: {len(sets)} sets, {bad} disagreements, {took:.0f} s; {what}", flush=True)
    return bad


@contextmanager
def installed(root: Path, packages: list[str], corpus: dict[str, list[str]]) -> Iterator[Path]:
    """Lay packages over the stock units of a root and enable their units."""
    tree = Path(tempfile.mkdtemp(prefix="sdqueue-corpus-"))
    try:
        shutil.copytree(root / STOCK, tree / STOCK, symlinks=True)
        (tree / ETC).mkdir(parents=True)
        for package in packages:
            for place, to in (("lib/systemd/system", STOCK), (STOCK, STOCK), (ETC, ETC)):
                _lay(CACHE / package / place, tree / to)
            _enable(tree, [name for name in corpus[package] if "@." not in name])
        (tree / ETC / PROBE).write_text(f"[Unit]\nDefaultDependencies=no\nAfter={TARGET}\n")
        if not os.path.lexists(tree / STOCK / TARGET):
            (tree / STOCK / TARGET).symlink_to("graphical.target")
        _make_relative(tree)
        yield tree
    finally:
        shutil.rmtree(tree)


def _lay(source: Path, target: Path) -> None:
    """Copy a directory over another; what is there gives way."""
    for folder, names, files in os.walk(source):
        to = target / Path(folder).relative_to(source)
        to.mkdir(parents=True, exist_ok=True)
        for name in (*files, *(n for n in names if Path(folder, n).is_symlink())):
            (to / name).unlink(missing_ok=True)
            shutil.copy2(Path(folder, name), to / name, follow_symlinks=False)


def _enable(tree: Path, names: list[str]) -> None:
    (tree / "lib").is_symlink() or (tree / "lib").symlink_to("usr/lib")
    for name in names:
        subprocess.run(
            ["systemctl", "-q", f"--root={tree}", "enable", name], capture_output=True, check=False
        )


def _make_relative(tree: Path) -> None:
    """Let absolute links stay inside the tree, wherever that is; let everyone read it."""
    for folder, names, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for path in (Path(folder, name) for name in (*names, *files)):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
                continue
            to = os.readlink(path)
            if to.startswith("/") and to != "/dev/null":
                inside = f"/usr{to}" if to.startswith("/lib/") else to
                path.unlink()
                path.symlink_to(os.path.relpath(f"{tree}{inside}", folder))


def examine(bench: Bench, tree: Path) -> tuple[list[str], str]:
    """Return the differences over one tree, and in a word what we foresee."""
    found, foreseen = agree(bench, tree)
    if foreseen is None:
        return found, "different"
    if foreseen.fails:
        return found, "fails"
    if foreseen.outlook.loops:
        return found, "cycle"
    return found, "conflict" if foreseen.outlook.p_conflicting else "clean"


if __name__ == "__main__":
    sys.exit(main())
