"""Long random runs of the unit file floor: `python3 tests/soak/fuzz_unitfile.py [WHAT…]`.

    parse     broken and mutated unit files: no exception, no line without its kind
    syntax    odd files, against what systemd reads
    load      random search paths, against what systemd loads
    install   random [Install] sections, against the links of systemctl enable
    fstab     random fstabs, against systemd-fstab-generator

Prints one line for each; a failing seed stops the run, and its input is a case to keep.
"""

import argparse
import glob
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "oracle"), str(TESTS.parent)]

from sdqueue.unitfile.parse import LineKind, parse, split_lines  # noqa: E402
from sdqueue.unitfile.split import strv, words  # noqa: E402

CORPUS = ("/usr/lib/systemd/system/*.*", "/usr/lib/systemd/user/*.*", f"{TESTS}/cases/**/*.service")
BITS = (b"\\\n", b"\\", b"\n", b"\r", b"\0", b"[", b"]", b"=", b"#", b";", b" ", b'"', b"'", b"%")
BITS += (
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xef\xbf\xbf",
    b"\xed\xa0\x80",
    b"[Unit]\n",
    b"After=",
    b"\x01",
)


def corpus() -> list[bytes]:
    """Return the unit files of this machine and of the cases, the small ones."""
    paths = (path for pattern in CORPUS for path in glob.glob(pattern, recursive=True))
    texts = (Path(path).read_bytes() for path in paths if Path(path).is_file())
    return [text for text in texts if 0 < len(text) < 2000] or [b"[Unit]\nAfter=a.service\n"]


def mutated(pick: random.Random, texts: list[bytes]) -> bytes:
    """Return a piece of a unit file with a few bytes put in, taken out or doubled."""
    text = bytearray(pick.choice(texts))
    start = pick.randrange(len(text))
    text = text[start : start + pick.randint(0, 300)]
    for _ in range(pick.randint(1, 6)):
        at = pick.randint(0, len(text))
        text[at : at + pick.choice((0, 0, 1, 5))] = pick.choice(BITS) * pick.choice((1, 1, 2))
    return bytes(text)


def check_parse(count: int, seed: int) -> int:
    """Parse `count` inputs; return how many lines they had."""
    pick, texts, lines = random.Random(seed), corpus(), 0
    for number in range(count):
        data = mutated(pick, texts)
        try:
            read = parse(data, "f")
            assert len(read.kinds) == len(split_lines(data))
            assert read.kinds.count(LineKind.ASSIGNMENT) == len(read.settings)
            for setting in read.settings:
                words(setting.value)
                strv(setting.value)
        except Exception:
            print(f"input {number} of seed {seed}: {data!r}", file=sys.stderr)
            raise
        lines += len(read.kinds)
    return lines


def check_syntax(count: int, seed: int) -> int:
    """Read `count` batches of odd files beside systemd."""
    import test_unitfile_syntax_oracle as test

    for each in range(seed, seed + count):
        test.test_odd_files_are_read_as_systemd_reads_them(each)
    return count * test.FILES


def check_load(count: int, seed: int) -> int:
    """Load `count` random search paths beside systemd."""
    import test_unitfile_oracle as test

    for each in range(seed, seed + count):
        _named(each, lambda at: test.test_a_random_search_path_is_loaded_as_systemd_loads_it(at))
    return count


def _named(seed: int, check: Callable[[int], None]) -> None:
    """Say which seed it was that failed."""
    try:
        check(seed)
    except AssertionError:
        print(f"seed {seed}", file=sys.stderr)
        raise


def check_install(count: int, seed: int) -> int:
    """Enable in `count` random roots beside systemctl."""
    import test_install_oracle as test

    for each in range(seed, seed + count):
        with tempfile.TemporaryDirectory() as work:
            test.test_enabling_random_units_makes_the_links_that_systemctl_makes(each, Path(work))
    return count


def check_fstab(count: int, seed: int) -> int:
    """Generate from `count` random fstabs beside the real generator."""
    import test_fstab_oracle as test

    for each in range(seed, seed + count):
        with tempfile.TemporaryDirectory() as work:
            test.test_this_machines_generator_writes_the_same(each, Path(work))
    return count


CHECKS: dict[str, tuple[Callable[[int, int], int], int]] = {
    "parse": (check_parse, 1_000_000),
    "syntax": (check_syntax, 400),
    "load": (check_load, 2_000),
    "install": (check_install, 3_000),
    "fstab": (check_fstab, 2_000),
}


def main() -> None:
    """Run what was asked for, or all."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("what", nargs="*", choices=[[], *CHECKS], help="default: all")
    options.add_argument("--count", type=int, help="how many of each")
    options.add_argument("--seed", type=int, default=1_000_000)
    asked = options.parse_args()
    done = []
    for name in asked.what or CHECKS:
        check, usual = CHECKS[name]
        count, before = asked.count or usual, time.monotonic()
        found = check(count, asked.seed)
        took = time.monotonic() - before
        print(
            f"{name}: {count} inputs, {found} in all, seed {asked.seed}, {took:.0f} s", flush=True
        )
        done.append(f"{name} {count}")
    print(f"no disagreement: {', '.join(done)}")


if __name__ == "__main__":
    main()
