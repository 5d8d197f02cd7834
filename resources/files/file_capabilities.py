"""Capabilities of files, as text and in the kernel's form. Sources: capabilities(7), cap_from_text(3)."""

from __future__ import annotations

import binascii
import re
import struct

# In the order of their numbers (linux/capability.h).
_SHORT = """
    chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
    net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
    sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
    mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
"""
NAMES = ["cap_" + name for name in _SHORT.split()]
_CLAUSE = re.compile(r"(\w+(?:,\w+)*)[=+]([eip]{1,3})\Z")
_REVISION, _EFFECTIVE = 0x02000000, 1
_MASK = 0xFF000000  # the bits of the revision


def parsed(text: str) -> tuple[int, int, bool]:
    """Return the permitted and the inheritable set, and whether the program starts with them in effect.

    :param text: clauses such as ``cap_net_raw,cap_net_admin=ep``, separated by blanks
    :raises ValueError: if it is not of this form, or the kernel can't store it
    """
    sets = {"e": 0, "i": 0, "p": 0}
    seen = 0
    for clause in text.split():
        match = _CLAUSE.match(clause.lower())
        if match is None:
            raise ValueError(f"value: {clause} is not a clause; write cap_net_bind_service=ep")
        for name in match.group(1).split(","):
            if name not in NAMES:
                raise ValueError(f"value: {name} is not a capability")
            bit = 1 << NAMES.index(name)
            if seen & bit:
                raise ValueError(f"value: {name} is there twice")
            seen |= bit
            for flag in match.group(2):
                sets[flag] |= bit
    if not seen:
        raise ValueError("value names no capability; absent: true removes all")
    if sets["e"] and sets["e"] != sets["i"] | sets["p"]:
        raise ValueError("value: a file has the flag e for all of its capabilities or for none, and only with i or p")
    return sets["p"], sets["i"], bool(sets["e"])


def as_bytes(text: str) -> bytes:
    """Return the value of the extended attribute.

    :param text: see `parsed`, or what `as_text` returns
    :raises ValueError: see `parsed`
    """
    if text.startswith("0x"):
        return binascii.unhexlify(text[2:])
    permitted, inheritable, effective = parsed(text)
    low = 0xFFFFFFFF
    words = (permitted & low, inheritable & low, permitted >> 32, inheritable >> 32)
    return struct.pack("<5I", _REVISION | (_EFFECTIVE if effective else 0), *words)


def as_text(value: bytes) -> str:
    """Return capabilities as text, in one form for equal capabilities; other revisions as hexadecimal digits."""
    if len(value) != 20 or int.from_bytes(value[:4], "little") & _MASK != _REVISION:
        return "0x" + value.hex()
    head, *words = struct.unpack("<5I", value)
    permitted, inheritable = words[0] | words[2] << 32, words[1] | words[3] << 32
    clauses: dict[str, list[str]] = {}
    for number in range(64):
        flags = ("i" if inheritable >> number & 1 else "") + ("p" if permitted >> number & 1 else "")
        if flags:
            name = NAMES[number] if number < len(NAMES) else f"cap_{number}"
            clauses.setdefault(("e" if head & _EFFECTIVE else "") + flags, []).append(name)
    return " ".join(f"{','.join(sorted(names))}={flags}" for flags, names in sorted(clauses.items()))


def normal(text: str) -> str:
    """Return capabilities in the form of `as_text`.

    :raises ValueError: see `parsed`
    """
    return as_text(as_bytes(text))
