"""Floor 4: the message bus. Nothing outside this package imports a D-Bus library.

`connection` is one connection, `systemd` the manager behind it as a typed client, `service` what we
serve ourselves. The package moves messages and decides nothing.
"""
