"""Cases for every node type, which tests run on hosts in four states to compare each plan with its apply.

A case declares nodes, prepares a bare host for them, and changes the host by hand so that the nodes drift.
"""

from __future__ import annotations

import atexit
import functools
import io
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statecfg import secret
from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.playbook.inventory import Host as Target
from statecfg.playbook.inventory import Login
from statecfg.playbook.plays import HostContext
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.ledger import state
from statecfg.resources import (
    acl,
    archive,
    block_in_file,
    capabilities,
    command,
    directory,
    download,
    file,
    generate,
    group,
    hard_link,
    ini_key,
    json_key,
    line_in_file,
    package,
    process,
    release_binary,
    remove,
    replace,
    service,
    symlink,
    toml_key,
    user,
    xattr,
    yaml_key,
)
from statecfg.resources.files import file_capabilities
from statecfg.run import fleet
from statecfg.transport import SshSettings
from tests.host.resources.truth_access import ACCESS
from tests.host.resources.truth_case import Case
from tests.host.resources.truth_firewalls import FIREWALLS
from tests.host.resources.truth_software import SOFTWARE
from tests.host.resources.truth_system import SYSTEM
from tests.lab import Host
from tests.lab.web import Web

# Two change the kernel, which the hosts share with this machine, and the podman of Debian 12 has no quadlets.
# `tests/unit/resources/test_recorded.py` tests them.
# `test_recorded_storage.py` there tests SELinux and LVM, which the kernel of this machine lacks.
NOT_FOR_REAL = {
    "kernel_module",
    "lvm_logical_volume",
    "lvm_volume_group",
    "quadlet",
    "swap",
    "selinux_boolean",
    "selinux_fcontext",
    "selinux_port",
}
# `test_dnf_types.py`, `test_pacman.py`, `test_zypper_repository.py` and `tests/host/run/test_reboot.py` test these with
# `truth_runs`, on hosts of their own.
OTHER_HOSTS = {"dnf_group", "dnf_module", "dnf_repository", "pacman_repository", "reboot", "zypper_repository"}
STATES = ("bare", "converged", "drifted", "half-failed")


def fleet_run(
    host: Host, graphs: Sequence[Graph], mode: str, playbook: str = "truth", **options: Any
) -> dict[str, Any]:
    """Run the graphs on a test host over SSH; return the host's part of the report."""
    target = Target(host.name, host.address, host.port, login=Login(host.user, (str(host.identity),)))
    settings = SshSettings(ssh_config="none", known_hosts=(str(host.known_hosts),), use_agent=False, default_keys=False)
    definition = compile_graph(merge_graphs(*graphs), WireContext(HostContext(host.name), Path.cwd()))
    job = fleet.Job(target, definition, playbook)
    report = fleet.run([job], fleet.Options(mode=mode, access=fleet.Access(settings), **options), lambda event: None)
    found: dict[str, Any] = report["hosts"][host.name]
    return found


def nodes(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the report's nodes by name."""
    return {node["name"]: node for layer in report["layers"] for node in layer}


def steps(node: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the op and the arguments of each action of a node, in order."""
    first = [node["shutdown_first"]] if node.get("shutdown_first") else []
    return [(action["op"], action["args"]) for action in [*first, *node["actions"]]]


def _file(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    return [
        file(f"{root}/plain", content="one\ntwo\n", mode="0640", owner="daemon", group="daemon", requires=[above]),
        file(f"{root}/large", content="x" * 20_000, requires=[above]),
        file(f"{root}/gone", absent=True, requires=[above]),
    ]


def _file_drift(host: Host, root: str) -> None:
    host.write(f"{root}/plain", "one\n")
    host.path(f"{root}/large").chmod(0o600)
    host.write(f"{root}/gone", "back again\n")


def _directory(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, mode="0750", purge=True, requires=requires)
    return [
        directory(f"{root}/in", owner="daemon", mode="g+w,o-rx", requires=[above]),
        file(f"{root}/kept", content="k", requires=[above]),
    ]


def _directory_drift(host: Host, root: str) -> None:
    host.write(f"{root}/stray/deep", "nobody asked for this\n")
    host.path(root).chmod(0o700)
    host.path(f"{root}/in").rmdir()


def _symlink(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    return [
        symlink(f"{root}/current", target=f"{root}/v1", requires=[above]),
        symlink(f"{root}/old", absent=True, requires=[above]),
    ]


def _symlink_drift(host: Host, root: str) -> None:
    host.run(["ln", "-sfn", "/elsewhere", f"{root}/current"])
    host.run(["ln", "-s", "/elsewhere", f"{root}/old"])


def _hard_link_bare(host: Host, root: str) -> None:
    host.write(f"{root}/kept", "kept\n")
    host.write(f"{root}/old", "old\n")


def _hard_link(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    config = file(f"{root}/config", content="port = 80\n", mode="0640", requires=[above])
    return [
        hard_link(f"{root}/also", target=f"{root}/config", replace=True, requires=[config]),
        hard_link(f"{root}/second", target=f"{root}/kept", replace=True, requires=[above]),
        hard_link(f"{root}/old", absent=True, requires=[above]),
    ]


def _hard_link_drift(host: Host, root: str) -> None:
    host.write(f"{root}/config", "port = 81\n")
    host.write(f"{root}/old", "back again\n")
    host.run(["cp", "--remove-destination", f"{root}/kept", f"{root}/second"])


def _acl_bare(host: Host, root: str) -> None:
    host.write(f"{root}/kept", "kept\n", 0o664)


def _acl(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    log = file(f"{root}/log", content="", mode="0640", requires=[above])
    shared = directory(f"{root}/shared", mode="0770", requires=[above])
    return [
        acl(f"{root}/log", entries=["group:adm:r--"], requires=[log]),
        acl(f"{root}/shared", entries=["user:daemon:rwx", "default:user:daemon:rwx"], exact=True, requires=[shared]),
        acl(f"{root}/kept", absent=True, requires=[above]),
    ]


def _acl_drift(host: Host, root: str) -> None:
    host.path(f"{root}/log").chmod(0o600)
    _set_list(host.path(f"{root}/kept"), 0o664)
    os.removexattr(host.path(f"{root}/shared"), "system.posix_acl_default")


def _set_list(path: Path, mode: int) -> None:
    """Let the user with the id 1 read and write a file."""
    group = mode >> 3 & 7
    entries = [(1, mode >> 6 & 7, -1), (2, 6, 1), (4, group, -1), (0x10, group, -1), (0x20, mode & 7, -1)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", packed)


def _xattr_bare(host: Host, root: str) -> None:
    host.write(f"{root}/kept", "kept\n")
    os.setxattr(host.path(f"{root}/kept"), "user.old", b"1")


def _xattr(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    page = file(f"{root}/page", content="hello\n", requires=[above])
    return [
        xattr(f"{root}/page", name="user.mime_type", value="text/plain", requires=[page]),
        xattr(root, name="trusted.backup", value="0x00ff", requires=[above]),
        xattr(f"{root}/kept", name="user.old", absent=True, requires=[above]),
    ]


def _xattr_drift(host: Host, root: str) -> None:
    host.write(f"{root}/page", "by hand\n")
    os.setxattr(host.path(root), "trusted.backup", b"by hand")


def _capabilities_bare(host: Host, root: str) -> None:
    host.write(f"{root}/kept", "#!/bin/sh\n", 0o755)
    os.setxattr(host.path(f"{root}/kept"), "security.capability", file_capabilities.as_bytes("cap_chown=ep"))


def _capabilities(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    program = file(f"{root}/program", content="#!/bin/sh\n", mode="0755", requires=[above])
    return [
        capabilities(f"{root}/program", value="cap_net_bind_service=ep", requires=[program]),
        capabilities(f"{root}/kept", absent=True, requires=[above]),
    ]


def _capabilities_drift(host: Host, root: str) -> None:
    os.setxattr(host.path(f"{root}/program"), "security.capability", file_capabilities.as_bytes("cap_kill=ep"))


def _package(root: str, requires: list[Graph]) -> list[Graph]:
    return [package("tool-b", requires=requires), package("tool-a", version="1.0", requires=requires)]


def _package_drift(host: Host, root: str) -> None:
    host.run(["apt-get", "-qy", "remove", "tool-b"])
    host.run(["apt-get", "-qy", "install", "tool-a=2.0"])


def _service(root: str, requires: list[Graph]) -> list[Graph]:
    webd = package("webd", version="1.0", requires=requires)
    text = "port = 8080\nmessage = planned\n"
    config = file("/etc/webd/webd.conf", content=text, mode="0644", requires=[webd])
    return [service("webd", running=True, enabled=True, restart_on=[config])]


def _service_drift(host: Host, root: str) -> None:
    host.write("/etc/webd/webd.conf", "port = 8080\nmessage = by hand\n")
    host.run(["systemctl", "disable", "webd"])


def _user(root: str, requires: list[Graph]) -> list[Graph]:
    team = group("team", gid=4321, requires=requires)
    return [
        user("deploy", uid=4322, group="team", groups=["daemon"], shell="/bin/sh", comment="Deploys", requires=[team])
    ]


def _user_drift(host: Host, root: str) -> None:
    host.run(["usermod", "-s", "/usr/sbin/nologin", "-c", "somebody else", "deploy"])


def _group(root: str, requires: list[Graph]) -> list[Graph]:
    return [group("crew", gid=4400, requires=requires), group("nocrew", absent=True, requires=requires)]


def _group_drift(host: Host, root: str) -> None:
    host.run(["groupmod", "-g", "4401", "crew"])
    host.run(["groupadd", "nocrew"])


def _command(root: str, requires: list[Graph]) -> list[Graph]:
    made = directory(root, requires=requires)
    build = command(
        "build", argv=["cp", "/etc/hostname", f"{root}/built"], creates=f"{root}/built", effects={}, requires=[made]
    )
    script = f"echo told >> {root}/log"
    told = command("tell", shell=script, unless=f"grep -q told {root}/log 2>/dev/null", requires=[build])
    return [told, file(f"{root}/after", content="after\n", requires=[build])]


def _command_drift(host: Host, root: str) -> None:
    host.path(f"{root}/built").unlink()


def _line(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    path = f"{root}/conf"
    return [
        line_in_file(
            path, line="color = blue", match="^color", create=True, mode="0644", requires=[above], provides=f"{path} a"
        ),
        line_in_file(path, line="size = 3", match="^size", requires=[f"{path} a"], provides=f"{path} b"),
    ]


def _line_drift(host: Host, root: str) -> None:
    host.write(f"{root}/conf", "color = red\nshape = round\n")


def _block(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    path = f"{root}/conf"
    return [
        block_in_file(
            path,
            block="color = blue\nsize = 3\n",
            name="a",
            create=True,
            mode="0644",
            requires=[above],
            provides=f"{path} a",
        ),
        block_in_file(path, block="shape = round", before="^# BEGIN", requires=[f"{path} a"], provides=f"{path} b"),
    ]


def _block_drift(host: Host, root: str) -> None:
    text = "# BEGIN managed by statecfg: a\ncolor = red\n# END managed by statecfg: a\nby hand\n"
    host.write(f"{root}/conf", text)


def _replace_bare(host: Host, root: str) -> None:
    host.write(f"{root}/conf", "color = red\n#size = 1\n")


def _replace(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    path = f"{root}/conf"
    color = replace(path, pattern="^color = .*", replacement="color = blue", requires=[above], provides=f"{path} a")
    return [
        color,
        replace(path, pattern=r"^#(\w+) = \d+", replacement=r"\1 = 3", requires=[f"{path} a"], provides=f"{path} b"),
    ]


def _replace_drift(host: Host, root: str) -> None:
    host.write(f"{root}/conf", "color = green\nby hand\n#size = 2\n")


@functools.cache
def web() -> Web:
    """Return an HTTPS server that runs until the tests end."""
    with tempfile.TemporaryDirectory() as directory:
        return Web(Path(directory))


def _download_bare(host: Host, root: str) -> None:
    host.write("/srv/download.pem", web().authority_text)


def _download(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    checksum, url = web().put("/tool", "tool\n"), web().url
    web().put("/key", "key\n")
    ca = "/srv/download.pem"
    return [
        download(f"{root}/tool", url=f"{url}/tool", checksum=checksum, ca=ca, mode="0755", requires=[above]),
        download(f"{root}/key", url=f"{url}/key", ca=ca, owner="daemon", requires=[above]),
    ]


def _download_drift(host: Host, root: str) -> None:
    host.write(f"{root}/tool", "by hand\n")
    host.path(f"{root}/key").unlink()


def _release_binary(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr(zipfile.ZipInfo("tool/tool"), "tool\n")
    checksum, url, ca = web().put("/tool.zip", stream.getvalue()), web().url, "/srv/download.pem"
    digest = web().put("/tool", "tool\n")
    archived = {"url": f"{url}/tool.zip", "checksum": checksum, "member": "tool/tool", "member_checksum": digest}
    return [
        release_binary(f"{root}/tool", version="1.0", ca=ca, requires=[above], **archived),
        release_binary(f"{root}/plain", url=f"{url}/tool", checksum=digest, ca=ca, mode="0700", requires=[above]),
        release_binary(f"{root}/gone", absent=True, requires=[above]),
    ]


def _release_binary_drift(host: Host, root: str) -> None:
    host.write(f"{root}/tool-1.0", "by hand\n")
    host.run(["ln", "-sfn", "tool-0.9", f"{root}/tool"])
    host.path(f"{root}/plain").unlink()
    host.write(f"{root}/gone", "back again\n")


def _keys(node_type: NodeType[...], drifted: str) -> Case:
    """Return the case of a node type that edits a key: two keys of one file, the first of which creates it."""

    def declare(root: str, requires: list[Graph]) -> list[Graph]:
        above, path = directory(root, requires=requires), f"{root}/conf"
        section = {"section": "log"} if node_type is ini_key else {}
        size = "size" if section else "log.size"
        first = node_type(path, key="port", value=80, create=True, mode="0640", requires=[above], provides=f"{path} a")
        return [first, node_type(path, key=size, value="10m", requires=[f"{path} a"], provides=f"{path} b", **section)]

    return Case(node_type.name, declare, lambda host, root: host.write(f"{root}/conf", drifted))


def _archive_bare(host: Host, root: str) -> None:
    files = {"app/bin/run": "#!/bin/sh\n", "app/conf": "port = 80\n"}
    for name, text in files.items():
        host.write(f"/srv/packed/{name}", text, 0o755 if text.startswith("#!") else 0o644)
    host.run(["tar", "-C", "/srv/packed", "-czf", "/srv/packed.tgz", "app"])


def _archive(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    copy = file(f"{root}.zip", source=str(_zip()), requires=requires)
    return [
        archive(root, host_source="/srv/packed.tgz", owner="daemon", requires=[above], provides=f"{root} tar"),
        archive(root, source=str(_zip()), strip_components=1, requires=[above], provides=f"{root} zip"),
        archive(root, host_source=f"{root}.zip", requires=[above, copy], provides=f"{root} copied zip"),
    ]


@functools.cache
def _zip() -> Path:
    """Return an archive on this machine. It stays until the tests end."""
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory)
    with zipfile.ZipFile(directory / "site.zip", "w") as packed:
        packed.writestr("site/index.html", "<p>hello\n")
        packed.writestr("site/img/", "")
    return directory / "site.zip"


def _archive_drift(host: Host, root: str) -> None:
    host.write(f"{root}/app/conf", "port = 81\n")
    host.path(f"{root}/index.html").chmod(0o600)


def _remove_bare(host: Host, root: str) -> None:
    host.write(f"{root}/in/file", "x\n")
    host.write(f"{root}-file", "x\n")


def _remove(root: str, requires: list[Graph]) -> list[Graph]:
    gone = remove(root, recursive=True, requires=requires)
    return [gone, remove(f"{root}-file", requires=[gone]), remove(f"{root}-link", requires=requires)]


def _remove_drift(host: Host, root: str) -> None:
    host.run(["ln", "-s", "/elsewhere", f"{root}-link"])
    host.run(["mkfifo", f"{root}-file"])


def _process(root: str, requires: list[Graph]) -> list[Graph]:
    attrs = {"user": "root", "group": "root", "env": {"A": "1"}, "args": ["7301"], "requires": requires}
    return [process("/usr/bin/sleep", attrs)]


def _process_drift(host: Host, root: str) -> None:
    host.run(["pkill", "-f", "sleep 7301"])


def _generate(root: str, requires: list[Graph]) -> list[Graph]:
    key = secret("truth-key", generate="key")
    return [
        file(f"{root}-key", content=f"key = {key}\n", mode="0600", requires=requires),
        generate("truth-id", kind="uuid"),
    ]


def _generate_drift(host: Host, root: str) -> None:
    host.path(state.generated("/var/lib/statecfg", "generate", "truth-id")).chmod(0o644)
    host.write(f"{root}-key", "key = lost\n")


CASES = [
    Case("file", _file, _file_drift),
    Case("directory", _directory, _directory_drift),
    Case("symlink", _symlink, _symlink_drift),
    Case("hard_link", _hard_link, _hard_link_drift, _hard_link_bare),
    Case("acl", _acl, _acl_drift, _acl_bare),
    Case("xattr", _xattr, _xattr_drift, _xattr_bare),
    Case("capabilities", _capabilities, _capabilities_drift, _capabilities_bare),
    Case("package", _package, _package_drift),
    Case("service", _service, _service_drift),
    Case("user", _user, _user_drift),
    Case("group", _group, _group_drift),
    Case("command", _command, _command_drift),
    Case("line_in_file", _line, _line_drift),
    Case("block_in_file", _block, _block_drift),
    Case("replace", _replace, _replace_drift, _replace_bare),
    _keys(ini_key, "; by hand\nport = 81\n[log]\nsize = 1m\n"),
    _keys(json_key, '{"port": 81, "log": {"size": "1m", "by": "hand"}}\n'),
    _keys(toml_key, 'port = 81 # by hand\n[log]\nsize = "1m"\n'),
    _keys(yaml_key, "# by hand\nport: 81\nlog:\n  size: 1m\n"),
    Case("archive", _archive, _archive_drift, _archive_bare),
    Case("remove", _remove, _remove_drift, _remove_bare),
    Case("download", _download, _download_drift, _download_bare),
    Case("release_binary", _release_binary, _release_binary_drift, _download_bare),
    Case("process", _process, _process_drift),
    Case("generate", _generate, _generate_drift),
    *SYSTEM,
    *ACCESS,
    *FIREWALLS,
    *SOFTWARE,
]
