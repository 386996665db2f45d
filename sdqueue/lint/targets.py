"""What is known of systemd's own targets: a table, after systemd.special(7)."""

PASSIVE = frozenset(
    f"{name}.target"
    for name in (
        "cryptsetup-pre", "first-boot-complete", "getty-pre", "integritysetup-pre", "local-fs-pre",
        "network", "network-pre", "nss-lookup", "nss-user-lookup", "remote-fs-pre", "rpcbind",
        "time-set", "time-sync", "veritysetup-pre",
    )
)  # fmt: skip
"""Pulled in by those who provide what they stand for; without a provider there is nothing to do."""

ON_EVENT = frozenset(
    f"{name}.target"
    for name in (
        "bluetooth", "ctrl-alt-del", "emergency", "exit", "factory-reset", "final", "halt",
        "hibernate", "hybrid-sleep", "initrd", "initrd-fs", "initrd-root-device", "initrd-root-fs",
        "initrd-switch-root", "initrd-usr-fs", "kbrequest", "kexec", "poweroff", "printer",
        "reboot", "rescue", "shutdown", "sigpwr", "sleep", "smartcard", "soft-reboot", "sound",
        "storage-target-mode", "suspend", "suspend-then-hibernate", "system-update",
        "system-update-pre", "tpm2", "umount", "usb-gadget",
    )
)  # fmt: skip
"""Started by hardware, by a person, or at the end; not being reached at boot is as it should be."""

SOFT = frozenset(
    f"{name}.target"
    for name in (
        "cryptsetup", "getty", "graphical", "integritysetup", "local-fs", "machines", "multi-user",
        "paths", "remote-cryptsetup", "remote-fs", "remote-integritysetup", "remote-veritysetup",
        "sockets", "swap", "timers", "veritysetup",
    )
)  # fmt: skip
"""Often named in After= for the case that they are started; meaning nothing otherwise is right."""

LATE = ("default.target", "multi-user.target", "graphical.target")
"""What a boot leads to."""


def is_of_boot(name: str) -> bool:
    """Whether it is a target that would have to be started at boot to mean anything."""
    return name.endswith(".target") and name not in PASSIVE and name not in ON_EVENT
