"""Users who exchange their directories while root plans and applies nodes there: what they prepare, and the rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from statecfg import resources
from statecfg.graph.graph import Graph
from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.remote.wire.frames import encode_value
from tests import ROOT
from tests.lab import Host, add_user

DRIVER = Path(__file__).parent / "races_on_host.py"
USERS = ("mal0", "mal1", "mal2")
KINDS = (
    "git", "venv", "npm", "gem", "archive", "directory", "file", "purge", "line", "json", "symlink", "hard_link",
    "remove", "ssh_key", "known_host", "authorized_key", "unit",
)  # fmt: skip
# Some nodes write to a fixed place in the home directory. Others write files, and links lie next to these files.
PLACES = {"authorized_key": ".ssh", "unit": ".config"}
LINKED = KINDS[5:]
HIDDEN = "nobody else reads this"
CANARY = "/srv/canary"
RAN = "/var/tmp/ran"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
# root prepares a repository, an archive, and directories of its own in the homes of the users.
OURS = """
set -e
git config --system --add safe.directory '*'
git init -q -b main /srv/repo
cd /srv/repo && git config user.name a && git config user.email a@b
echo one > f && git add f && git commit -qm one
mkdir -p /srv/tree/bin /srv/canary && echo tool > /srv/tree/bin/tool && tar -C /srv/tree -czf /srv/tree.tar.gz .
echo ours > /srv/canary/f && echo ours > /srv/canary/tool && chmod 755 /srv/canary
mkdir -p /srv/canary/systemd/user && echo "{\"hidden\": \"$2\"}" > /srv/canary/hidden && chmod 600 /srv/canary/hidden
: > "$1" && chmod 666 "$1"
"""
# Each user has for each kind: x and good, which are harmless; evil, which names the program everywhere; and two links.
THEIRS = r"""
set -e
cat > ~/run <<END
#!/bin/sh
id -u >> "$1"
cat
END
chmod 755 ~/run
for kind in $3; do
    mkdir ~/$kind && cd ~/$kind && ln -s evil link && ln -s /srv/canary out && mkdir evil good && cp -r evil x
done
for kind in $4; do
    cd ~/$kind/evil && ln -s /srv/canary sub && ln -s /srv/canary/hidden f
    ln -s /srv/canary/hidden authorized_keys && ln -s /srv/canary/systemd systemd
    mkdir -p ../x/sub ../good/sub && echo '{}' | tee ../x/f > ../good/f
done
rm -rf ~/.ssh ~/.config && mv ~/authorized_key/x ~/.ssh && mv ~/unit/x ~/.config
cd ~/git && rm -r evil good x && git clone -q /srv/repo x && cp -r x good && cp -r x evil && cd evil
echo '* filter=e diff=e' > .git/info/attributes && touch f && sleep 0.01 && echo two >> f
for name in core.fsmonitor core.sshCommand core.editor core.pager core.askpass remote.origin.uploadpack \
    filter.e.clean filter.e.smudge diff.e.textconv diff.e.command credential.helper gpg.program; do
    git config $name ~/run
done
mkdir -p hooks .git/hooks && cp ~/run .git/hooks/post-checkout && cp ~/run .git/hooks/reference-transaction
git config core.hooksPath .git/hooks
cd ~/venv && for each in x good evil; do
    mkdir -p $each/bin $each/lib/python3/site-packages && touch $each/pyvenv.cfg
    ln -s /usr/bin/python3 $each/bin/python
done
ln -sf ~/run evil/bin/python
cd ~/npm && for each in x good evil; do
    mkdir -p $each/lib/node_modules/tool $each/bin $each/etc
    echo '{"name": "tool", "version": "1.0.0", "scripts": {"preuninstall": "'$HOME'/run"}}' > package.json
    cp package.json $each/lib/node_modules/tool
done
printf 'script-shell=%s\ngit=%s\nnode-options=--require %s\n' ~/run ~/run ~/run.js > evil/etc/npmrc
cd ~/gem && for each in x good evil; do
    mkdir -p $each/specifications $each/plugins $each/bin
    printf '# -*- encoding: utf-8 -*-\n# stub: tool 1.0 ruby lib\nGem::Specification.new do |s|\n%s\nend\n' \
        's.name, s.version, s.summary, s.authors = "tool", "1.0", "a", ["b"]' > $each/specifications/tool-1.0.gemspec
done
echo 'system("'$HOME'/run </dev/null")' | tee -a evil/specifications/tool-1.0.gemspec > evil/plugins/tool_plugin.rb
"""


def node(kind: str, home: str) -> Graph:
    """Return the node of a kind in a directory that the user exchanges."""
    path = f"{home}/{kind}/x"
    if kind == "git":
        return resources.git_checkout(path, repository="/srv/repo", version="main")
    if kind == "venv":
        return resources.python_venv(path, packages=["tool"], find_links="/srv/tree", timeout=20)
    if kind == "npm":
        return resources.npm_package("tool", prefix=path, absent=True)
    if kind == "gem":
        return resources.gem("tool", directory=path, absent=True)
    if kind == "archive":
        return resources.archive(path, host_source="/srv/tree.tar.gz", owner="root")
    if kind == "directory":
        return resources.directory(path, mode="0750", owner="root")
    if kind == "purge":
        return resources.directory(path, purge=True)
    if kind == "line":
        return resources.line_in_file(path + "/f", line="root", create=True, backup=".old", validate=["true", "{}"])
    if kind == "json":
        return resources.json_key(path + "/f", key="root", value=1, create=True, mode="0644")
    if kind == "symlink":
        return resources.symlink(path + "/f", target="/srv/tree", owner="root", replace=True)
    if kind == "hard_link":
        return resources.hard_link(path + "/other", target=path + "/f", replace=True)
    if kind == "remove":
        return resources.remove(path + "/sub", recursive=True)
    if kind == "ssh_key":
        return resources.ssh_key(path + "/sub/key", owner="root")
    if kind == "known_host":
        return resources.known_host("example.org", key=KEY, path=path + "/f")
    if kind == "authorized_key":
        return resources.authorized_key("race", user=home.rpartition("/")[2], key=KEY)
    if kind == "unit":
        sections = {"Service": {"ExecStart": "/bin/true"}}
        return resources.systemd_unit("race.service", user=home.rpartition("/")[2], sections=sections)
    return resources.file(path + "/f", content="root\n", owner="root", mode="0600", backup=".old")


def prepared(host: Host) -> None:
    """Prepare a host for the races."""
    host.run(["sh", "-c", OURS, "sh", RAN, HIDDEN])
    theirs = THEIRS.replace("$1", RAN).replace("$3", " ".join(KINDS)).replace("$4", " ".join(LINKED))
    for user in USERS:
        add_user(host, user)
        host.run(["runuser", "-l", user, "-c", theirs])
        host.run(["chown", "-R", "root:", *(f"/home/{user}/{kind}/good" for kind in KINDS)])
    host.write("/opt/races.py", DRIVER.read_text())


def race(host: Host, rounds: int, seed: int, kinds: tuple[str, ...] = KINDS) -> dict[str, Any]:
    """Run rounds, each with one node of one user, and return the outcomes.

    :raises AssertionError: if root ran a program of a user, or wrote outside the directories
    """
    nodes = {}
    for user in USERS:
        for kind in kinds:
            definition = compile_graph(node(kind, f"/home/{user}"), WireContext(base=Path("/")))
            blobs = [encode_value(blob, inline=1 << 30) for blob in definition.blobs.values()]
            nodes[f"{user} {kind}"] = {"layers": definition.layers, "blobs": blobs}
    users = [(int(host.run(["id", "-u", user]).stdout), f"/home/{user}") for user in USERS]
    given = {"nodes": nodes, "users": users, "kinds": kinds, "places": PLACES, "rounds": rounds, "seed": seed}
    given["ran"] = RAN
    look = ["find", CANARY, "/srv/repo", "/srv/tree", "/etc", "-printf", "%p %y %m %u %g %s %T@\n"]
    before = host.run(look).stdout
    argv = ["python3", "-I", "-S", "/opt/races.py", str(ROOT)]
    done = host.run(argv, stdin=json.dumps(given), seconds=60 + rounds * 5)
    found: dict[str, Any] = json.loads(done.stdout)
    assert "0" not in found["ran"], found
    assert host.run(look).stdout == before
    assert not host.run(["grep", "-rl", HIDDEN, "/home"], check=False).stdout
    return found
