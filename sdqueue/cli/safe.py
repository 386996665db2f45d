"""Text of others, made fit for a terminal: no control characters, of a known width.

Names, descriptions and messages may come from hostile files; whatever is printed goes through here.
"""


def safe(text: str) -> str:
    """Return `text` with everything that is not printable escaped, spaces of any kind as spaces."""
    if text.isprintable():
        return text
    return "".join(map(_safe_character, text))


def _safe_character(character: str) -> str:
    if character.isprintable():
        return character
    if character in "\t\u00a0\u3000":
        return " "
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def width(text: str) -> int:
    """Return how many columns a safe text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    from unicodedata import combining, east_asian_width

    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def ellipsized(text: str, columns: int) -> str:
    """Return `text` in at most `columns` columns, its end replaced by an ellipsis if need be."""
    if width(text) <= columns:
        return text
    room, kept = columns - 1, []
    for character in text:
        room -= _width(character)
        if room < 0:
            break
        kept.append(character)
    return f"{''.join(kept)}…" if columns > 0 else ""


def padded(text: str, columns: int) -> str:
    """Return `text` filled up with spaces to `columns`."""
    return text + " " * (columns - width(text))
