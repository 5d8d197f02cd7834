"""A hundred nodes of every type on a booted host. Pruning any of them restores the state from before."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from statecfg.resources import command, directory, file, group, line_in_file, package, process, service, symlink, user
from statecfg.run import fleet
from tests import lab
from tests.host.run import rig
from tests.lab import Host
from tests.lab.fixtures import or_skip

SEEDS = (1, 2)  # one seed removes many nodes, the other a few
LINES = "/srv/lines"
# Prints one line for each object. A space, a colon or the end of the line follows the object's name.
STATE = r"""
dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Abbrev}\n'
apt-mark showauto | sed 's/^/automatic /'
systemctl list-unit-files --no-legend --no-pager --plain | grep -v '^nap-\|^session-'
for n in 0 1 2 3 4; do echo "nap-$n is $(systemctl is-active nap-$n)"; done
for table in passwd group gshadow subuid subgid; do sed "s/^/$table /" /etc/$table; done
cut -d: -f1,2 /etc/shadow
ps -eo args= | grep -o '^/usr/bin/sleep 7[0-9]*'
find /etc /srv /home /opt /var/lib/statecfg/processes -xdev ! -path '/etc/*-' ! -name .pwd.lock ! -name ld.so.cache \
    ! -path /etc/passwd ! -path /etc/group ! -path /etc/shadow ! -path /etc/gshadow ! -path '/etc/sub?id' \
    ! -path '/srv/apt*' ! -path '/var/lib/statecfg/*' -printf '%p %y %m %u %g %l\n' 2>/dev/null
find /etc /srv /home -xdev -type f ! -path '/srv/apt*' ! -path '/srv/lines' ! -path '/etc/*-' ! -path '/etc/passwd' \
    ! -path /etc/group ! -path /etc/shadow ! -path /etc/gshadow ! -path '/etc/sub?id' ! -name ld.so.cache \
    -exec sha256sum {} + 2>/dev/null
sed 's/^/line /' /srv/lines
"""
UNIT = "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"


def hundred() -> dict[str, tuple[Any, list[str], str]]:
    """Return for each node name: the graph, the required nodes, and a pattern of the object's name on the host."""
    found: dict[str, tuple[Any, list[str], str]] = {}

    def add(graph: Any, name: str, word: str, *requires: str) -> str:
        found[name] = (graph, list(requires), word)
        return name

    for n in range(8):
        above = add(directory(f"/srv/dir-{n}", mode="0750", provides=f"d{n}"), f"d{n}", f"dir-{n}")
        for m in range(3):
            path = f"/srv/dir-{n}/file-{n}{m}"
            given: Any = {"content": f"ours {n} {m}\n", "mode": "0640", "requires": [above], "provides": f"f{n}{m}"}
            add(file(path, **given), f"f{n}{m}", f"file-{n}{m}", above)
    for n in range(8):  # half of them exist before the first run
        add(file(f"/etc/conf-{n}", content="ours\n", provides=f"c{n}"), f"c{n}", f"conf-{n}")
        add(symlink(f"/opt/link-{n}", target="/srv", replace=True, provides=f"s{n}"), f"s{n}", f"link-{n}")
        line = line_in_file(LINES, line=f"key-{n} = ours", match=f"^key-{n} ", provides=f"l{n}")
        add(line, f"l{n}", f"key-{n}")
        undo = f"rm /srv/made-{n}"
        made = command(f"make-{n}", shell=f"touch /srv/made-{n}", creates=f"/srv/made-{n}", undo=undo, provides=f"m{n}")
        add(made, f"m{n}", f"made-{n}")
    for n in range(6):
        above = add(group(f"team-{n}", gid=4300 + n, provides=f"g{n}"), f"g{n}", f"team-{n}")
        given = {"uid": 4400 + n, "group": f"team-{n}", "remove_home": True, "requires": [above], "provides": f"u{n}"}
        add(user(f"user-{n}", **given), f"u{n}", f"user-{n}", above)
    for n in range(5):
        add(package(f"pack-{n}", provides=f"p{n}"), f"p{n}", f"pack-{n}")
    for n in range(5):
        path = f"/etc/systemd/system/nap-{n}.service"
        above = add(file(path, content=UNIT, provides=f"n{n}"), f"n{n}", f"etc/systemd/system/nap-{n}.service f")
        given = {"running": n % 2 == 0, "enabled": True, "requires": [above], "provides": f"v{n}"}
        add(service(f"nap-{n}", **given), f"v{n}", f"multi-user.target.wants/nap-{n}.service|nap-{n} is", above)
    for n in range(9):
        attrs = {"user": "root", "group": "root", "env": {}, "args": [f"710{n}"], "provides": f"r{n}"}
        add(process("/usr/bin/sleep", attrs), f"r{n}", f"710{n}")
    assert len(found) == 100
    return found


HUNDRED = hundred()


class Site:
    """A booted host to which the hundred nodes are applied."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def run(self, names: Sequence[str], mode: str, **job: Any) -> dict[str, Any]:
        """Run with the nodes of these names; return the host's part of the report."""
        given = rig.define(*[HUNDRED[name][0] for name in names])
        options = fleet.Options(mode=mode, access=fleet.Access(rig.settings(self.host)), agreed=True)
        job.setdefault("prune", False)
        jobs = [fleet.Job(rig.inventoried(self.host), given, "hundred", **job)]
        found: dict[str, Any] = fleet.run(jobs, options, lambda event: None)["hosts"][self.host.name]
        assert found["status"] == "ok", found
        return found

    def state(self) -> list[str]:
        return sorted(self.host.run(["sh", "-c", STATE], check=False).stdout.splitlines())


def about(word: str, lines: Sequence[str]) -> list[str]:
    """Return the lines about the objects that match a pattern."""
    pattern = re.compile(rf"(^|[ /:])({word})([ :]|$)")
    return [line for line in lines if pattern.search(line)]


def names(layers: Sequence[Sequence[dict[str, Any]]]) -> set[str]:
    """Return the names of the nodes, without restarts of units that stay when their settings are removed."""
    return {node["name"] for layer in layers for node in layer if not node["name"].endswith(" (stays)")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with or_skip():
        repository = lab.AptRepository(tmp_path_factory.mktemp("apt") / "repository")
        repository.add("under", "1.0", files={"/opt/under": ("x", 0o644)})
        for n in range(5):  # two of them depend on `under`, and one is already installed
            text = {f"/opt/pack-{n}": ("x", 0o644)}
            repository.add(f"pack-{n}", "1.0", files=text, depends="under" if n in (1, 2) else "")
        host = lab.booted_host("hundred")
    try:
        repository.use(host)
        host.run(["apt-get", "-qy", "install", "pack-4"])
        for n in range(4):
            host.write(f"/etc/conf-{n}", f"former {n}\n", 0o600 + n)
            host.run(["ln", "-s", f"/former-{n}", f"/opt/link-{n}"])
        host.write(LINES, "# by hand\nkey-1 = former\n# also\nkey-3 = former\n")
        host.run(["groupadd", "-g", "4305", "team-5"])
        host.run(["mkdir", "-m", "0700", "/srv/dir-7"])
        host.write("/srv/dir-7/file-70", "former\n")
        yield Site(host)
    finally:
        host.stop()


def dropped(seed: int) -> set[str]:
    """Return a random subset of the nodes, and all nodes that require one of them."""
    choose = random.Random(seed)
    found = set(choose.sample(sorted(HUNDRED), choose.choice([1, 10, 30, 50])))
    return found | {name for name, (_, requires, _) in HUNDRED.items() if found.intersection(requires)}


def test_pruning_any_of_a_hundred_nodes_restores_the_host(site: Site) -> None:
    before = site.state()
    assert names(site.run(list(HUNDRED), "apply")["layers"]) == set(HUNDRED)
    full = site.state()
    for name, (_, _, word) in HUNDRED.items():
        assert about(word, full), name
    for seed in SEEDS:
        gone = dropped(seed)
        rest = [name for name in HUNDRED if name not in gone]
        stays = site.run(rest, "plan")
        assert (names(stays["left"]), names(stays["removals"])) == (gone, set())
        plan = site.run(rest, "plan", prune=True)
        assert (names(plan["removals"]), names(plan["left"])) == (gone, set())
        done = site.run(rest, "apply", prune=True)
        assert names(done["removals"]) == gone
        assert {node["outcome"] for layer in done["layers"] for node in layer} == {"unchanged"}
        assert not [node for layer in done["removals"] for node in layer if node.get("leaves")]
        now = site.state()
        for name, (_, _, word) in HUNDRED.items():
            assert about(word, now) == about(word, before if name in gone else full), (seed, name)
        strange = set(now) - set(before) - set(full)
        assert not strange, seed
        again = site.run(rest, "apply", prune=True)
        assert again["summary"] == {"unchanged": len(rest)}
        site.run(list(HUNDRED), "apply")
        assert site.state() == full, seed
    everything = site.run([], "apply", prune=True)
    assert names(everything["removals"]) == set(HUNDRED)
    assert site.state() == before


def test_the_hundred_nodes_cover_the_basic_node_types() -> None:
    """`test_plan_comes_true` and the tests of the other types destroy these on booted hosts."""
    given = rig.define(*[graph for graph, _, _ in HUNDRED.values()])
    basic = {"command", "directory", "file", "group", "line_in_file", "package", "process", "service", "symlink"}
    assert {node["type"] for layer in given.layers for node in layer} >= {*basic, "user"}
