"""`sdqueue --help`: every verb on one line."""

from sdqueue.cli.verbs import GLOBAL_OPTIONS, VERBS


def overview() -> str:
    """Return the text of `sdqueue --help`."""
    lines = ["sdqueue [OPTIONS…] VERB …", "", "A job queue whose jobs are systemd units."]
    group = ""
    for verb in VERBS:
        if verb.group != group:
            group = verb.group
            lines += ["", f"{group}:"]
        lines.append(f"  {verb.name:<12} {verb.help}")
    lines += ["", "Options of every verb, before or after it:"]
    lines += [f"  {option:<12} {text}" for option, text in GLOBAL_OPTIONS.items() if option != "-h"]
    lines += [
        "",
        "Without a verb: status. `sdqueue VERB --help` says more; the manual is sdqueue(1).",
    ]
    return "\n".join(lines) + "\n"
