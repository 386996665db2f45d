"""Floor 1: unit files as values. Text and listings come in, units come out.

Knows systemd's syntax, names, aliases, masks, drop-ins, specifiers and [Install]. Must not know
what a dependency *means* (`sdqueue.boot`), and never touches a file: what it needs of a file
system it asks of a `Files` (`sdqueue.unitfile.files`), which `sdqueue.unitpath` implements.

    parse.parse(data, file)             one file: assignments, comments, every line's kind
    load.UnitSet(files).get(name)       one unit, by any of its names, with drop-ins and links
    refs.refs(unit, "After", host)      the names that a dependency list means
    enable.enable(names, files, …)      the links that `systemctl enable` would make
    directives.judge(type, section, …)  whether systemd of a version knows a setting there
    fstab.generate(text, machine)       what systemd-fstab-generator would write
"""
