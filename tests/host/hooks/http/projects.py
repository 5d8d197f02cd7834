"""A project with its own node type, hooks and a store, and a hook service whose answers a test chooses."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecfg import dialects, store
from statecfg.hooks.http.reconcile import Reconciler
from statecfg.hooks.registration import files
from statecfg.hooks.service import HookError, HookRequest, HookService
from statecfg.playbook import project
from statecfg.run import prepare
from statecfg.run.prepare import Choice, Work
from statecfg.store.database import Store

INVENTORY = """
hosts: {web1: {address: 192.0.2.1, vars: {tier: front}}, web2: {}, db1: {}}
groups: {web: {hosts: [web1, web2]}}
"""

DEPLOYMENT = '''
"""Deployments, as a cluster has them."""

from __future__ import annotations

from statecfg.remote.graph.nodetype import node_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional


@node_type
def deployment(
    name: str,
    *,
    template: Dict[str, Any],
    replicas: int = 1,
    selector: Optional[Dict[str, Any]] = None,
    strategy: Optional[Dict[str, Any]] = None,
) -> None:
    """A deployment."""


@deployment.check
def check(node, world):
    return []
'''

PLAYBOOK = """
hosts: web
vars: {port: 8080}
resources:
  - file: /etc/motd
    content: "hello\\n"
    tags: [text]
  - deployment: teapot
    template: {spec: {containers: [{name: teapot, image: "teapot:1", env: [{name: WATER, value: hot}]}]}}
    requires: [file:/etc/motd]
"""


@dataclass
class Place:
    """A project. `hook` writes a registration, and `apply` prepares a playbook like an apply."""

    root: Path
    store: Store
    last: Reconciler | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def make(cls, root: Path, playbook: str = PLAYBOOK) -> Place:
        for folder in ("resources", "playbooks", "hooks"):
            (root / folder).mkdir(mode=0o755)
        (root / "inventory.yml").write_text(INVENTORY)
        (root / "resources/deployment.py").write_text(DEPLOYMENT)
        (root / "playbooks/site.yml").write_text(playbook)
        return cls(root, store.opened(url=f"sqlite:///{root}/store.db"))

    def hook(self, url: str, name: str = "teapot", spec: str = "", workload: str = "", **hook: str) -> None:
        lines = [f"metadata: {{name: {name}}}", "spec:", *(f"  {line}" for line in spec.splitlines())]
        lines += ["  hook:", "    version: v1", f"    address: {{uri: '{url}'}}"]
        given = {"capabilities": "[pre-reconcile, finalize]", **hook}
        lines += [f"    {key}: {value}" for key, value in given.items()]
        lines += ["  workload:", *(f"    {line}" for line in workload.splitlines())] if workload else []
        path = self.root / f"hooks/{name}.yml"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o644)

    @property
    def path(self) -> Path:
        """The path of the playbook."""
        return self.root / "playbooks/site.yml"

    @property
    def site(self) -> str:
        """The name of the playbook in reports and in the store."""
        return prepare.owner(project.find(self.root), self.path)

    def reconciler(self) -> Reconciler:
        known = project.find(self.root)
        self.last = Reconciler(self.store, files.load(known), "run-1", dialects.inventory(known))
        return self.last

    def apply(self, limit: str | None = "web1") -> Work:
        return prepare.playbook(self.path, Choice(limit=limit), self.reconciler())

    def plain(self, limit: str | None = "web1") -> Work:
        return prepare.playbook(self.path, Choice(limit=limit))

    def fired(self, host: str = "web1") -> list[tuple[str, str, str]]:
        assert self.last is not None
        return [(each["hook"], each["event"], each["status"]) for each in self.last.fired.get(host, [])]


def nodes(work: Work) -> dict[str, dict[str, Any]]:
    """Return the wire nodes of the only job, by name."""
    (job,) = work.jobs
    return {node["provides"]: node for layer in job.definition.layers for node in layer}


@dataclass
class Watched:
    """A hook service. It passes each request to `change`, which a test can replace, and keeps a copy in `seen`."""

    service: HookService = field(default_factory=HookService)
    seen: list[HookRequest] = field(default_factory=list)
    errors: list[HookError | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.service.pre_reconcile(self._asked)
        self.service.finalize(self._asked)

    def change(self, request: HookRequest) -> None:
        """Leave the request unchanged. A test can replace this method."""

    def _asked(self, request: HookRequest) -> None:
        self.seen.append(copy.deepcopy(request))
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        self.change(request)
