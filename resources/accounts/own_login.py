"""The login of statecfg itself: whether it stays possible after the plan, and a new login after each change of it.

The controller sends which user logs in, with which key, and how the run becomes another user. Only what the plan makes
worse counts: what can't be seen here, such as certificates, is not judged.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError, HostNode, Unknown
from statecfg.remote.graph.names import Outcome
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.machine.world import World
from statecfg.remote.run.login_guard import is_sshd
from statecfg.remote.run.plan import Plan, Step
from statecfg.remote.wire.channel import Channel
from statecfg.resources.accounts import key_effect, login_rules, password_ages, sudo_files, users
from statecfg.resources.network import firewall_guard
from statecfg.resources.services import sshd
from statecfg.resources.shared import sources
from statecfg.resources.ssh import ssh_files

SHELLS = "/etc/shells"
NO_SHELLS = ("nologin", "false", "true", "sync")
ACCOUNTS = ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", SHELLS)
SUDO = ("/etc/sudoers", "/etc/sudoers.d")
FACETS = ("users", "groups", "passwords", password_ages.ages.name)
LOCKED = tuple(map(users.fingerprint, ("!", "!!", "!*")))
SSH = ssh_files.DIRECTORY
TREES = (*SUDO, *login_rules.PAM, SSH)  # directories whose files count
# Kinds of problems that a new login does not show before the next start of sshd, or that can't be restored.
NOT_SHOWN = ("access", "configuration", "host key", "server", "mounts")


class OwnLogin:
    """The login of this run.

    :param data: what the controller sent: `user`, `key`, `host_key` (its type) and `become`: the method, the user, and
        whether there is a password
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.user, self.key = str(data["user"]), str(data["key"])
        self.become: Sequence[Any] = data.get("become") or ()
        sudo = list(self.become[:1]) == ["sudo"]
        self.rules = login_rules.LoginRules(self.user, bool(self.key), sudo, str(data.get("host_key") or ""))

    # The plan

    def confirm(self, plan: Plan, machine: Planned) -> None:
        """Fail the nodes of a plan that would take this login away.

        :param machine: the simulated machine after all actions
        """
        real = Planned(machine.base, machine.root)
        places = self.places(real)
        steps = [*plan.removed.values(), *plan.steps.values()]
        if any(
            is_sshd(step.node) and step.outcome != Outcome.UNCHANGED for step in steps
        ):  # the guard of sshd tries its new settings
            places = {kind: [each for each in place if each != SSH] for kind, place in places.items()}
            places = {**places, "access": [], "configuration": []}
        if not any(_concerns(step, places) for step in _acting(plan)):
            return
        touched = [kind for kind, place in places.items() if any(_touches(step, place) for step in _acting(plan))]
        machine.turn("", frozenset())
        machine.memo, machine.complete = {}, True
        before = dict(self.problems(real, touched, plan))
        for kind, problem in self.problems(machine, touched, plan):
            if kind not in before:
                self._blame(plan, problem, places[kind])
        machine.complete = False

    def _blame(self, plan: Plan, problem: str, place: Sequence[str]) -> None:
        """Fail the last node that touches what a problem is about."""
        causes = [step for step in _acting(plan) if _touches(step, place)]
        if not causes or any(step.node.options.get("allow_lockout") for step in causes):
            return
        step = causes[-1]
        step.outcome = Outcome.FAILED
        step.reason = f"statecfg logs in as {self.user}, and could no longer do that: {problem}"
        if not step.removal:
            step.reason += "; allow_lockout: true accepts that"

    def places(self, world: World) -> Mapping[str, Sequence[str]]:
        """Return kind of problem → what it depends on: paths, and facets with a key."""
        entry = world.entry("users", self.user) or {}
        home, shell = str(entry.get("home") or "/"), str(entry.get("shell") or "")
        user = f"users {self.user}"
        try:
            keys = key_effect.files_of(world, self.user, home)[0]
        except OSError:
            keys = []
        found: Mapping[str, Sequence[str]] = {
            "account": (user, "/etc/passwd"),
            "configuration": (SSH,),
            "shell": (user, "/etc/passwd", SHELLS, *([shell, sources.target(world, shell)] if shell else [])),
            "expiry": (user, f"{password_ages.ages.name} {self.user}", f"passwords {self.user}", "/etc/shadow", SSH),
            "key": (user, *keys, SSH),
            "modes": (user, home, posixpath.join(home, ".ssh"), *keys, SSH),
            "sudo": (user, "groups", *SUDO),
            **self.rules.places(world, home),
        }
        return {kind: [*place, *_real(world, place)] for kind, place in found.items()}

    def problems(self, world: Planned, touched: Sequence[str], plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield the reasons why this login is not possible: kind and text.

        :param touched: the kinds that the plan touches
        """
        checks: tuple[tuple[str, Callable[[World, Mapping[str, Any]], str]], ...] = (
            ("shell", self._shell), ("expiry", self._expiry), ("key", self._key), ("modes", self._modes),
            ("sudo", self._sudo), *(check for check in self.rules.checks() if check[0] in touched),
        )  # fmt: skip
        entry = world.entry("users", self.user)
        if entry is None:
            yield "account", f"the user {self.user} would not exist"
            return
        for kind, check in checks:
            try:
                problem = check(world, entry)
            except (Unknown, CheckError, OSError):
                continue  # it is not known yet: the login after the change shows it
            if problem:
                yield kind, problem
        if "server" in touched:
            server = self.rules.places(world, "/")["server"]
            effects = [f"{facet} {key}" for step in _acting(plan) for facet, key in step.touches.effects]
            try:
                problem = login_rules.server_problem(world, [each for each in effects if each in server])
            except (Unknown, CheckError, OSError):
                problem = ""
            if problem:
                yield "server", problem
        if "configuration" in touched and world.root:
            said = sshd.refusal(world) if world.stat(ssh_files.PROGRAM) is not None else ""
            world.notes.clear()
            if said:
                yield "configuration", f"sshd would refuse its configuration: {said}"

    def _shell(self, world: World, entry: Mapping[str, Any]) -> str:
        shell = entry.get("shell") or "/bin/sh"
        path = sources.target(world, shell)
        stat = world.stat(path)
        if stat is None or stat.file_type != "file":
            return f"the shell {shell} does not exist; require what installs it"
        if not stat.mode & 0o111:
            return f"the shell {shell} is not executable"
        if posixpath.basename(shell) in NO_SHELLS or posixpath.basename(path) in NO_SHELLS:
            return f"{shell} is no login shell"
        listed = [place.text.strip() for place in sources.places(world, SHELLS)]
        if listed and shell not in listed and path not in listed:
            return f"{SHELLS} does not list the shell {shell}"
        return ""

    def _expiry(self, world: World, entry: Mapping[str, Any]) -> str:
        expires = (world.entry(password_ages.ages.name, self.user) or {}).get("expires", password_ages.NEVER)
        if expires != password_ages.NEVER and str(expires) <= time.strftime("%Y-%m-%d", time.gmtime()):
            return f"the account has expired on {expires}"
        pam = ssh_files.setting(world, self.user, "usepam", "no")[0].lower() == "yes"
        locked = (world.entry("passwords", self.user) or {}).get("hash") in LOCKED
        return "its password is locked, and sshd does not use PAM" if locked and not pam else ""

    def _line(self, world: World, entry: Mapping[str, Any]) -> key_effect.KeyLine | None:
        """Return the first line with the key of this login."""
        for path in key_effect.files_of(world, self.user, str(entry.get("home")))[0]:
            for line in key_effect.keys(world, path):
                if line.key == self.key:
                    return line
        return None

    def _key(self, world: World, entry: Mapping[str, Any]) -> str:
        line = self._line(world, entry) if self.key else None
        if line is None:
            kind, _, key = self.key.partition(" ")
            return f"sshd would no longer find its key ({kind} …{key[-12:]}); put it into the list"
        if "command=" in line.options:
            return f"its key would only run one command: {line.place}"
        return ""

    def _modes(self, world: World, entry: Mapping[str, Any]) -> str:
        line = self._line(world, entry) if self.key else None
        if line is None:
            return ""
        return key_effect.refused(world, self.user, str(entry.get("home")), line.place.path)

    def _sudo(self, world: World, entry: Mapping[str, Any]) -> str:
        if not self.become or self.become[0] != "sudo":
            return ""
        _, target, with_password = self.become
        whole = sudo_files.rules_of(world)
        rule = whole.verdict(self.user, "/usr/bin/python3", str(target), whole.rules)
        if rule is None or rule.command.startswith("!"):
            return f"sudo would not allow {self.user} to become {target}"
        asks = rule.password or (rule.password is None and whole.unasked(rule, self.user) is None)
        if asks and not with_password:
            return f"sudo would ask {self.user} for a password, because of {rule.place}"
        return ""

    # The run

    def guard(self, plan: Plan, channel: Channel, facets: Facets, warnings: list[str]) -> firewall_guard.ChangeGuard:
        """Return the guard that tries a new login after each change of this login, and restores what prevents it."""
        machine = RealMachine(facets)
        places = self.places(machine)

        # A new login does not show what sshd will do after its next start.
        shown = {
            kind: [each for each in place if each != SSH] for kind, place in places.items() if kind not in NOT_SHOWN
        }

        def concerns(node: HostNode) -> bool:
            step = plan.steps.get(node.provides) or plan.removed.get(node.provides)
            allowed = step is None or node.options.get("allow_lockout")
            return not allowed and step is not None and _concerns(step, shown)

        def record() -> Callable[[], list[str]]:
            files = [*ACCOUNTS, *SUDO, *shown["modes"][1:]]
            return _recorded(machine, [*files, *places["nologin"], *places["files"], *places["starts"]])

        # Until its restart, sshd may combine former settings with new groups: then only the end of the run counts.
        restarts = any(step.acts and is_sshd(step.node) for step in (*plan.steps.values(), *plan.removal_steps()))

        def quiet(node: HostNode) -> bool:
            return restarts

        what = f"the login of {self.user}"
        watched = firewall_guard.Watched((), record, what=what, concerns=concerns, quiet=quiet)
        return firewall_guard.ChangeGuard(channel, True, warnings, watched)


def _real(world: World, place: Sequence[str]) -> list[str]:
    """Return the paths without links to directories, which nodes touch: /usr/bin/sh for /bin/sh."""
    found = []
    for path in place:
        try:
            found += [world.canonical(path)] if path.startswith("/") else []
        except OSError:  # it can't be reached
            continue
    return [path for path in found if path not in place]


def _acting(plan: Plan) -> list[Step]:
    """Return the steps that have something to do, removals first."""
    return [step for steps in (plan.removed, plan.steps) for step in steps.values() if step.outcome == Outcome.CHANGED]


def _concerns(step: Step, places: Mapping[str, Sequence[str]]) -> bool:
    return any(_touches(step, place) for place in places.values())


def _touches(step: Step, place: Sequence[str]) -> bool:
    """Return whether a step changes one of some paths or facets, or something above or below such a path."""
    paths = [path for path in step.touches.paths if isinstance(path, str)]
    effects = {facet if facet == "groups" else f"{facet} {key}" for facet, key in step.touches.effects}
    if effects.intersection(place):
        return True
    for path in paths:
        for other in place:
            # What is below a directory counts only if the whole directory counts, such as the one with sudo's rules.
            if path == other or other.startswith(path.rstrip("/") + "/") or (other in TREES and path.startswith(other)):
                return True
    return False


def _recorded(machine: RealMachine, paths: Sequence[str]) -> Callable[[], list[str]]:
    """Record files and directories, and return the function that restores them and returns what went wrong.

    What this user can't read is left out: the run can't change it either.
    """
    folders, files, found = {}, [], [*dict.fromkeys(paths)]
    for path in found:  # it grows
        try:
            stat = machine.stat(path)
        except PermissionError:
            continue
        if not os.access(path, os.R_OK) and stat is not None:
            continue
        if stat is not None and stat.file_type == "directory":
            folders[path] = stat
            if path in TREES:
                found += [posixpath.join(path, name) for name in machine.listdir(path)]
        else:
            files.append(path)
    accounts = firewall_guard.files(machine, [path for path in files if path in ACCOUNTS])
    put_back = firewall_guard.files(machine, [path for path in files if path not in ACCOUNTS])

    owners = {path: firewall_guard.numbers(stat) for path, stat in folders.items()}

    def restore() -> list[str]:
        results, problems = [], accounts()  # owners are names of these accounts
        for path, stat in sorted(folders.items()):
            now = machine.stat(path)
            if now is None or (now.mode, now.owner, now.group) != (stat.mode, stat.owner, stat.group):
                results.append(machine.mkdir(path, stat.mode, *owners[path]))
        for path in (path for path in folders if path in TREES):
            new = {posixpath.join(path, name) for name in machine.listdir(path)}.difference(found)
            results += [machine.remove(each) for each in sorted(new)]
        return problems + firewall_guard.failures(*results) + put_back()

    return restore
