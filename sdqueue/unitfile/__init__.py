"""Floor 1: unit files as values. Text and listings come in, units come out.

Knows systemd's syntax, names, aliases, masks, drop-ins, specifiers and [Install]. Must not know
what a dependency *means* (`sdqueue.boot`), and never touches a file: what it needs of a file
system it asks of a `Files` (`sdqueue.unitfile.files`), which `sdqueue.unitpath` implements.
"""
