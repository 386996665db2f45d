"""Makes sdqueue/unitfile/directives_data.py out of what systemd itself says that it knows.

systemd --dump-configuration-items > FILE       on each version, oldest first, then
python3 tests/oracle/extract_directives.py 252=FILE 257=FILE 262=FILE
"""

import sys
import textwrap
from collections import defaultdict
from pathlib import Path

TARGET = Path(__file__).parents[2] / "sdqueue" / "unitfile" / "directives_data.py"
HEAD = '''"""What settings systemd knows, in its own words; by tests/oracle/extract_directives.py.

Each record: kind of the value, sections, first and last checked version that has it, keys.
"""

VERSIONS = ({versions})
DATA = """\\
{records}
"""
'''
Items = dict[tuple[str, str], str]


def read(text: str) -> Items:
    """Return {(section, key): kind} of one dump."""
    items: Items = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line:
            key, _, kind = line.partition("=")
            items[section, key] = kind
    return items


def records(dumps: dict[int, Items]) -> list[str]:
    """Return the records of all versions together; the first kind that is not OTHER counts."""
    versions = sorted(dumps)
    where: dict[tuple[str, str, int, int], list[str]] = defaultdict(list)
    for section, key in dict.fromkeys(each for v in versions for each in dumps[v]):
        having = [v for v in versions if (section, key) in dumps[v]]
        assert versions.index(having[-1]) - versions.index(having[0]) == len(having) - 1, key
        kinds = [dumps[v][section, key] for v in having]
        kind = next((each for each in kinds if each != "OTHER"), "OTHER")
        where[key, kind, having[0], having[-1]].append(section)
    groups: dict[tuple[str, str, int, int], list[str]] = defaultdict(list)
    for (key, kind, first, last), sections in where.items():
        groups[kind, " ".join(sections), first, last].append(key)
    return [
        f"{kind}|{sections}|{first}|{last}|{' '.join(sorted(keys))}"
        for (kind, sections, first, last), keys in sorted(groups.items())
    ]


def wrapped(record: str) -> str:
    """Return a record in lines of at most 100 columns; the ones after the first are indented."""
    return textwrap.fill(
        record, 99, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False
    )


def main(arguments: list[str]) -> None:
    """Write the module."""
    pairs = (each.partition("=") for each in arguments)
    dumps = {int(version): read(Path(file).read_text()) for version, _, file in pairs}
    text = "\n".join(wrapped(record) for record in records(dumps))
    versions = ", ".join(str(version) for version in sorted(dumps))
    TARGET.write_text(HEAD.format(versions=versions, records=text))


if __name__ == "__main__":
    main(sys.argv[1:])
