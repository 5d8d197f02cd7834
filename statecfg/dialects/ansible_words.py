"""Words of Ansible that users write in YAML, and their equivalents in statecfg."""

from __future__ import annotations

import re
from collections.abc import Mapping

_INCLUDE = "`include: FILE` adds the entries of another file"
_BECOME = "set `become` for the host in the inventory, or pass -b"
_LOOP = "`for_each: LIST` repeats an entry; each round has `item`"

# Keyword of a task or play → what to write instead.
KEYWORDS: Mapping[str, str] = {
    "name": "begin the entry with its node type; a comment (`# …`) describes it",
    "tasks": "`resources:` lists the entries of a play",
    "pre_tasks": "`resources:` lists the entries of a play; `requires` orders them",
    "post_tasks": "`resources:` lists the entries of a play; `requires` orders them",
    "handlers": "`restart_on: [NAME]` on a service restarts it when NAME changes",
    "notify": "`restart_on: [NAME]` on the service restarts it when NAME changes",
    "roles": _INCLUDE,
    "role": _INCLUDE,
    "include_tasks": _INCLUDE,
    "import_tasks": _INCLUDE,
    "include_role": _INCLUDE,
    "import_role": _INCLUDE,
    "import_playbook": _INCLUDE,
    "loop": _LOOP,
    "with_items": _LOOP,
    "with_list": _LOOP,
    "with_dict": "`for_each: MAP` repeats an entry; each round has `key` and `value`",
    "loop_control": "`as: NAME` beside `for_each:` names the item; `loop.index0` is its index",
    "register": "use the guards of `command`: `creates`, `unless`, `onlyif`",
    "become": _BECOME,
    "become_user": _BECOME,
    "become_method": _BECOME,
    "gather_facts": "remove it; definitions read `host.facts`, such as `host.facts.os.family`",
    "delegate_to": "write a play for that host",
    "run_once": "write a play for one host",
    "block": "`- resources: [ENTRY, …]` with `when:` or `for_each:` contains entries",
    "rescue": "statecfg stops at a failure; --keep-going continues with what does not depend on it",
    "always": "statecfg stops at a failure; --keep-going continues with what does not depend on it",
    "ignore_errors": "--keep-going continues with what does not depend on a failed node",
    "changed_when": "use the guards of `command`: `creates`, `unless`, `onlyif`",
    "failed_when": "use `failed_when` of `command`: exit statuses, and patterns for its output",
    "vars_files": "write it for a host or group in the inventory; or write `vars:`, or pass -e @FILE",
    "set_fact": "write `vars:` of the play or of an include",
    "environment": "set `env:` of the command",
    "debug": "`statecfg inventory --vars` shows variables",
    "state": "omit it, or write `absent: true`; for a service, `running: true`",
    "no_log": "declare the value as a secret: `!secret {env: NAME}`",
}
# Module → node type.
MODULES: Mapping[str, str] = {
    "apt": "package", "yum": "package", "dnf": "package", "copy": "file", "template": "file",
    "lineinfile": "line_in_file", "blockinfile": "block_in_file", "systemd": "service", "systemd_service": "service",
    "shell": "command", "script": "command", "raw": "command", "get_url": "download", "unarchive": "archive",
    "ini_file": "ini_key", "known_hosts": "known_host", "assert": "assertion", "uri": "http_request",
    "alternatives": "alternative", "dpkg_divert": "diversion", "pam_limits": "limits",
    "pamd": "pam", "seboolean": "selinux_boolean", "sefcontext": "selinux_fcontext", "seport": "selinux_port",
    "lvg": "lvm_volume_group", "lvol": "lvm_logical_volume",
    "git": "git_checkout", "pip": "python_venv", "postgresql_db": "postgresql_database",
    "postgresql_ext": "postgresql_extension", "postgresql_privs": "postgresql_grant",
    "mysql_db": "mariadb_database", "mysql_user": "mariadb_user", "npm": "npm_package",
    "openssl_privatekey": "tls_key", "x509_certificate": "tls_certificate", "openssh_keypair": "ssh_key",
    "locale_gen": "locale", "modprobe": "kernel_module",
}  # fmt: skip

COLLECTION = re.compile(r"[a-z_]\w*(\.[a-z_]\w*){2,}")  # the name of a module with its collection


def equivalent(word: str) -> str:
    """Return what to write instead of a word of Ansible; "" for other words.

    :param word: a keyword, or a module with or without its collection
    """
    if word == "state":  # of many modules, not a keyword of a task
        return f"`state` is a word of Ansible: {KEYWORDS[word]}"
    if word in KEYWORDS:
        return f"`{word}` is an Ansible keyword: {KEYWORDS[word]}"
    module = word.removeprefix("ansible.builtin.").removeprefix("ansible.legacy.")
    if module in MODULES:
        return f"`{word}` is an Ansible module: the node type is `{MODULES[module]}`"
    if COLLECTION.fullmatch(module):
        return f"`{word}` is an Ansible module: write `ansible_module: NAME` with `module: {word}` and `arguments:`"
    return f"the node type is `{module}`" if module != word else ""
