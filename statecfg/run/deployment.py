"""The services of a playbook in the form that a run needs: hosts, charms, settings and relations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from statecfg.problems import problem, report
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.model import Blob
from statecfg.remote.wire.frames import INLINE, encode_value

if TYPE_CHECKING:
    from statecfg.run.charms import Charm
    from statecfg.run.declared import ServiceWork
    from statecfg.run.prepare import Work
    from statecfg.store.units.records import Declared, DeclaredRelation

Json = dict[str, Any]
LINK = 0o120000  # the mode of a symbolic link
# Hosts with units in one run. Each has its own threads, because it stays connected until no unit has a hook left.
MAX_HOSTS = 1_000


@dataclass(frozen=True)
class Deployment:
    """The services of a playbook.

    :param project: the name of the project in the store
    :param playbook: the name of the owning playbook on hosts
    :param services: the declared services
    :param relations: relations between these services, or with services of other playbooks
    :param prune: whether to remove orphans
    :param secrets: service → option → value, for secret options; never stored
    :param charms: service → charm, None for a service without hooks
    :param as_is: whether to ignore the declarations: the units stay as they are and run the hooks that are due
    """

    project: str
    playbook: str
    services: Sequence[Declared] = ()
    relations: Sequence[DeclaredRelation] = ()
    prune: bool = False
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    charms: Mapping[str, Charm | None] = field(default_factory=dict)
    as_is: bool = False

    def digest(self, service: str) -> str:
        """Return a digest of a service's charm and of its settings without secrets."""
        parts = [[declared.digest, declared.settings] for declared in self.services if declared.name == service]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def files(self, service: str, contents: dict[str, Blob]) -> Json:
        """Return a service's charm in the form that hosts receive.

        :param service: name of the service
        :param contents: receives the charm's large files, by digest
        """
        charm = self.charms[service]
        files: Json = {}
        if charm is None:
            return {"name": service, "digest": "", "files": files}
        for name, (mode, source) in sorted(charm.files.items()):
            body = source if mode == LINK else encode_value(Blob.of(charm.content(name)), INLINE, contents)
            files[name] = [mode, body]
        return {"name": charm.name, "digest": charm.digest, "files": files}


def check_hosts(with_units: int) -> None:
    """Check that a run does not have too many hosts with units.

    :raises InvalidInput: it has
    """
    if with_units > MAX_HOSTS:
        what = f"the run has units of services on {with_units:,} hosts; the limit is {MAX_HOSTS:,}"
        report(problem("SC0454", what, "run it for some of the hosts at a time: --limit HOSTS"))


def of_work(work: Work, project: str, playbook: str, prune: bool) -> Deployment:
    """Return the deployment of a prepared playbook.

    :param work: the prepared playbook
    :param project: the name of the project in the store
    :param playbook: the name of the owning playbook on hosts
    :param prune: whether to remove orphans
    """
    return Deployment(
        project,
        playbook,
        [_declared(service) for service in work.services],
        _relations(work) if work.relations else (),
        prune,
        {service.service.name: service.secrets for service in work.services},
        {service.service.name: service.charm for service in work.services},
    )


def _relations(work: Work) -> list[DeclaredRelation]:
    from statecfg.store.units.records import DeclaredRelation

    return [
        DeclaredRelation(tuple((end.service, end.relation) for end in relation.ends)) for relation in work.relations
    ]


def _declared(work: ServiceWork) -> Declared:
    from statecfg.store.units.records import Declared  # most playbooks declare no services

    name = work.service.name
    charm, digest = (work.charm.name, work.charm.digest) if work.charm is not None else (name, "")
    ends = work.charm.related if work.charm is not None else {}
    return Declared(name, work.hosts, charm, digest, work.schema, work.settings, work.timeout, work.secrets, ends)
