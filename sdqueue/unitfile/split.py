"""How systemd reads a value: booleans, and the two ways in which it splits a list.

Knows nothing of keys; which key is split in which way is in `directives`.
"""

from collections.abc import Iterator

BLANKS = " \t\n\r"
BOOLEANS = {
    **dict.fromkeys(("1", "yes", "y", "true", "t", "on"), True),
    **dict.fromkeys(("0", "no", "n", "false", "f", "off"), False),
}
_TO_SPACE = str.maketrans(dict.fromkeys(BLANKS, " "))


def boolean(value: str) -> bool | None:
    """Return the boolean that systemd reads, None where it reads none.

    Re-enacts parse_boolean(), src/basic/parse-util.c, v252.
    """
    return BOOLEANS.get(value.lower())


def words(value: str) -> list[str]:
    """Split at blanks; quotes and backslashes are ordinary characters (dependency lists).

    Re-enacts extract_first_word() with EXTRACT_RETAIN_ESCAPE, src/basic/extract-word.c, v252.
    """
    return [word for word in value.translate(_TO_SPACE).split(" ") if word]


def strv(value: str) -> list[str]:
    """Split at blanks outside quotes, quotes removed; an open quote or a last backslash ends it.

    Re-enacts strv_split_full() as config_parse_strv() uses it (EXTRACT_UNQUOTE and
    EXTRACT_RETAIN_ESCAPE), src/shared/conf-parser.c, v252: what was split before the fault stays.
    """
    result = []
    for word in _unquoted(value):
        if word is None:
            break
        result.append(word)
    return result


def _unquoted(value: str) -> Iterator[str | None]:
    """Yield words without their quotes; None where a quote is never closed."""
    word: list[str] | None = None
    quote = ""
    for char in value:
        if quote:
            if char == quote:
                quote = ""
            elif word is not None:
                word.append(char)
        elif char in BLANKS:
            if word is not None:
                yield "".join(word)
                word = None
        else:
            word = [] if word is None else word
            if char in "'\"":
                quote = char
            else:
                word.append(char)
    if word is not None:
        yield None if quote else "".join(word)
