"""The request to one host, and the frames that carry it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.playbook.inventory import Host
from statecfg.playbook.packed import longest
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import Mode
from statecfg.remote.wire import frames as wire
from statecfg.run import host_modules
from statecfg.run.bundle import Bundle, Part
from statecfg.run.host.new_login import by_ssh
from statecfg.run.host.outgoing import plain
from statecfg.run.host.shared_content import SharedContent
from statecfg.run.options import Access, Limits
from statecfg.transport import Target
from statecfg.transport.become import Become

EXPECTED = 5_000  # maximum number of fingerprints in one frame


@dataclass(frozen=True)
class CommonRequest:
    """The part of the request that is the same for every host of a run. See `fleet.Options`.

    :param content: the content that several hosts get
    """

    run: str
    mode: str
    who: str
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    content: SharedContent = field(default_factory=SharedContent, compare=False)


@dataclass(frozen=True)
class HostRequest:
    """The request to one host.

    :param playbook: the name of the owning playbook in the host's ledger
    :param expect: node → fingerprint of a saved plan, None without a saved plan
    :param asks: whether the user must confirm the plan before the host applies it
    :param more: additional data for the executor (see `fleet.Job`)
    :param peer: the host key in a saved plan, "" without a saved plan
    :param facts: the facts that the host collects before it gets its definition, in the form that it receives; None if
        the definition needs none
    :param first_parts: the parts of the executor that the host needs before it gets the nodes
    :param login: see `HostConnection`
    :param peer_key: the host key of the connection, as `TYPE FINGERPRINT`
    """

    host: Host
    definition: Definition
    playbook: str
    bundle: Bundle
    order: CommonRequest
    expect: Mapping[str, str] | None = None
    asks: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    peer: str = ""
    facts: Mapping[str, Any] | None = None
    first_parts: Sequence[Part] = ()
    login: tuple[str, str] = ("", "")
    peer_key: str = ""

    @property
    def find_out(self) -> str:
        """The command that shows what the run did on this host, in a sentence."""
        words = [self.host.name, "--run", self.order.run, *self.order.access.arguments]
        return f"To see what it did: statecfg run-history {shlex.join(words)}"

    def resuming(self, boot: str, bundle: Bundle) -> HostRequest:
        """Return the request that continues the run after the host rebooted.

        The host plans no removals again, and compares its plan with the earlier one itself.

        :param boot: the id of the boot that has ended
        :param bundle: the core with all node types of the definition
        """
        more = {**self.more, "resume": {"boot": boot}, "prune": False}
        return replace(self, bundle=bundle, expect=None, asks=False, more=more, facts=None, first_parts=())

    @property
    def waits_for_facts(self) -> bool:
        """Whether the definition is incomplete until the host has sent facts."""
        return self.facts is not None and self.order.mode not in Mode.ASKING

    @property
    def target(self) -> Target:
        """The host in the form that transports use."""
        return Target.of(self.host)

    @property
    def become(self) -> Become | None:
        """Which user to become: from the command line, otherwise from the inventory."""
        access, login = self.order.access, self.host.login
        if access.become is not None or login.become is None:
            return access.become
        # doas takes no password without a terminal; if it needs one, it reports that itself.
        password = access.password
        if password is None and login.become_password is not None:
            password = login.become_password.reveal()
        return Become(login.become, login.become_user, None if login.become == "doas" else password)

    @property
    def account(self) -> Mapping[str, Any]:
        """What the host must keep: user, public key, type of the host key, and how the run becomes another user."""
        user, key = self.login
        become = self.become
        how = [become.method, become.user, become.password is not None] if become is not None else []
        peer = self.peer_key.partition(" ")[0]
        return {"user": user, "key": key, "become": how, "module": host_modules.ACCOUNT, "host_key": peer}

    @property
    def has_units(self) -> bool:
        """Whether units of the host may run hooks."""
        return bool(self.more.get("units", {}).get("units"))

    @property
    def hooks(self) -> set[str]:
        """The names of the hooks that the host may ask the controller to call."""
        return {hook["name"] for hook in self.more.get("hooks", ()) if hook["where"] == "controller"}

    @property
    def patience(self) -> float:
        """Maximum number of seconds that the host may take without progress."""
        units = longest([(self.more.get("units") or {}).get("longest")])
        return self.order.limits.patience + max(self.definition.packed.longest, units)

    def opening(self, nonce: str) -> Iterator[bytes]:
        """Yield the frames to send before the host has answered.

        :param nonce: the text that the executor must repeat in its greeting
        """
        yield plain({"type": "hello", "nonce": nonce, "bundle": self.bundle.sha256})
        yield wire.encode(
            {
                "type": "run",
                "run": self.order.run,
                "mode": self.order.mode,
                "who": self.order.who,
                "playbook": self.playbook,
                "types": self.bundle.modules,
                "keep_going": self.order.limits.keep_going,
                "lock_timeout": self.order.limits.lock_timeout,
                "verify_content": self.order.limits.verify_content,
                "secrets": dict(self.definition.secrets),
                "expect": self.expect is not None,
                "asks": self.asks,
                "login": by_ssh(self.target),
                **({"account": self.account} if self.login[0] else {}),
                **({"facts": self.facts} if self.facts is not None else {}),
                "parts": [part.sha256 for part in self.first_parts],
                **self.more,
            }
        )
        expect = sorted((self.expect or {}).items())
        for start in range(0, len(expect), EXPECTED):
            yield wire.encode({"type": "expect", "nodes": dict(expect[start : start + EXPECTED])})
        if not self.waits_for_facts:
            yield from self.definition.packed.frames

    def begin(self, parts: list[str]) -> bytes:
        """Return the frame that completes the request.

        :param parts: digests of the additional parts of the executor that this host needs
        """
        late = {"types": self.bundle.modules, "secrets": dict(self.definition.secrets)} if self.waits_for_facts else {}
        owed = {"restarts": dict(self.definition.restarts)} if self.definition.restarts else {}
        return wire.encode({**self.more, **late, **owed, "type": "begin", "parts": parts})
