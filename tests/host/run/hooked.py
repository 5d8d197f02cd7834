"""A project with a playbook and hooks, and the command that applies it to test hosts."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.host.command import Ran, reach, statecfg
from tests.lab import Host, processes

Json = dict[str, Any]
# Appends its input, one line with a JSON document, to the file `seen` in the hook's directory.
NOTE = "#!/bin/sh\nread -r given\nprintf '%s\\n' \"$given\" >> seen\n"
FAIL = '#!/bin/sh\ncat > /dev/null\necho \'{"error": {"message": "the oven is cold"}}\'\nexit 1\n'
OK = "#!/bin/sh\nexec cat > /dev/null\n"


@dataclass
class Site:
    """A project with its own store, for some test hosts."""

    root: Path
    hosts: Sequence[Host]
    more: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)
        (self.root / "hooks").mkdir(mode=0o755)
        self.reach = reach(self.root, self.hosts)
        (self.root / "statecfg.toml").write_text('name = "site"\nssh_config = "ssh_config"\nlock_timeout = 30\n')
        self.home = self.root / "home"
        self.home.mkdir()

    # Setting up the project

    def playbook(self, resources: str, head: str = "") -> None:
        """Write a playbook for all hosts with these resources in YAML."""
        lines = "".join(f"  {line}\n" for line in resources.strip("\n").splitlines())
        (self.root / "site.yml").write_text(f"hosts: all\n{head}resources:\n{lines or '  []'}\n")

    def files(self, **contents: str) -> None:
        """Write a playbook with a file /srv/site-NAME for each content; each file requires the one before."""
        before, text = "", ""
        for name, content in contents.items():
            text += f"- file: /srv/site-{name}\n  content: {json.dumps(content)}\n"
            text += f"  tags: [{name}]\n" + (f"  requires: [file:/srv/site-{before}]\n" if before else "")
            before = name
        self.playbook(text)

    def type(self, name: str, programs: Mapping[str, str], configuration: str = "") -> Path:
        """Write a hook type and return its directory."""
        folder = self.root / f"hooks/{name}.hook"
        folder.mkdir(mode=0o755, exist_ok=True)
        for event, text in programs.items():
            program = folder / event
            program.write_text(text)
            program.chmod(0o755)
        if configuration:
            (folder / "configuration.yaml").write_text(configuration)
            (folder / "configuration.yaml").chmod(0o644)
        return folder

    def hook(self, name: str, programs: Mapping[str, str], configuration: str = "", **spec: Any) -> Path:
        """Write a hook type and its registration; return the type's directory."""
        folder = self.type(name, programs, configuration)
        self.register(name, {"exec": {"type": name}, "events": list(programs), **spec})
        return folder

    def register(self, name: str, spec: Json) -> None:
        """Write the registration of a hook."""
        path = self.root / f"hooks/{name}.yml"
        path.write_text(json.dumps({"metadata": {"name": name}, "spec": spec}) + "\n")
        path.chmod(0o644)

    def http(self, url: str, name: str = "greeting", **spec: Any) -> None:
        """Register an HTTP hook."""
        hook = {"version": "v1", "address": {"uri": url}, "timeout": "PT20S"}
        hook["capabilities"] = ["pre-reconcile", "finalize"]
        self.register(name, {"hook": {**hook, **spec.pop("hook", {})}, **spec})

    # Running the command

    def run(self, *words: str, code: int | None = 0, **env: str) -> Ran:
        """Run the command in the project, for a user without personal settings."""
        return statecfg(*words, cwd=self.root, code=code, **self.environment, **self.more, **env)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the project's user: a separate home and a separate store."""
        places = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
        store = str(self.root / "store.db")
        return {**dict.fromkeys(places, str(self.home)), "STATECFG_STORE": store, "STATECFG_LOCK_TIMEOUT": "30"}

    def do(self, verb: str, *words: str, code: int | None = 0) -> Json:
        """Run a verb on the playbook without its question; return the reports of the hosts, by host name."""
        yes = ["--yes"] if verb in ("apply", "prune", "destroy") else []
        found: Json = self.run(verb, "site.yml", *yes, *words, "--json", code=code).json()["hosts"]
        return found

    def one(self, verb: str, *words: str, code: int | None = 0) -> Json:
        """Run a verb for the project's only host; return the host's report."""
        (found,) = self.do(verb, *words, code=code).values()
        host: Json = found
        return host

    def change_store(self, statement: str) -> None:
        """Run an SQL statement on the store."""
        with contextlib.closing(sqlite3.connect(self.root / "store.db")) as database:
            database.execute(statement)
            database.commit()

    # Reading the results

    def seen(self, name: str, host: Host | None = None) -> list[Json]:
        """Return the inputs that a hook with the program NOTE has recorded, on this machine or on the host."""
        if host is None:
            files = [self.root / f"hooks/{name}.hook/seen"]
        else:
            files = sorted(host.path("/var/lib/statecfg/hooks").glob(f"*/{name}.hook/seen"))
        return [json.loads(line) for path in files if path.exists() for line in path.read_text().splitlines()]

    def log(self, name: str) -> list[Json]:
        """Return the log of a hook, oldest event first."""
        found: list[Json] = self.run("hook", "log", name, "--json").json()["events"]
        return found

    def configuration(self, name: str) -> Json:
        """Return a hook's configuration."""
        found: Json = self.run("hook", "show", name, "--json").json()["configuration"]
        return found


def causes(seen: Sequence[Json]) -> list[str]:
    """Return the cause of each call of a hook: "EVENT" or "EVENT NODE"."""
    return [" ".join(filter(None, [each["hook"]["cause"], each.get("resource", {}).get("name")])) for each in seen]


def outcomes(host: Json) -> dict[str, str]:
    """Return the outcome of each node, by node name."""
    return {node["name"]: node["outcome"] for part in ("removals", "layers") for layer in host[part] for node in layer}


def fired(host: Json) -> list[tuple[str, str, str, str]]:
    """Return the hook calls in the report: hook, event, node, status."""
    return [(each["hook"], each["event"], each["name"], each["status"]) for each in host.get("fired", [])]


def states(host: Host, site: str = "site/site.yml") -> dict[str, str]:
    """Return the state of each resource in the host's ledger, by name."""
    import sqlite3

    # SQLite can't open the file through a link of /proc, so this reads the bytes. No run writes the file meanwhile.
    database = sqlite3.connect(":memory:")
    database.deserialize(host.path("/var/lib/statecfg/ledger.db").read_bytes())
    found = database.execute("SELECT name, state FROM resource WHERE playbook = ? ORDER BY name", [site]).fetchall()
    database.close()
    return dict(found)


def running_here(site: Site) -> list[int]:
    """Return the ids of this machine's processes that are hooks of the site or were started by them."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:  # the process has ended meanwhile
            continue
        ours = any(word.startswith(b"STATECFG_HOOK=") and os.fsencode(site.root) in word for word in words)
        if ours and processes.alive(int(name)):
            found.append(int(name))
    return found


def left_here(site: Site) -> list[int]:
    """Return the hook processes that still run on this machine after 20 seconds."""
    end = time.monotonic() + 20
    while (found := running_here(site)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


USER = getpass.getuser()
