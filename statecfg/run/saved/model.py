"""The types of a saved plan's data. `shape` checks a file against them."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from statecfg.run.report_model import HostData


class Made(TypedDict):
    """Who made a plan, when, and from what.

    :ivar at: UTC, ISO 8601
    :ivar by: user@machine
    :ivar commit: the hash of the git commit; None outside of git
    :ivar modified: the inputs that differ from that commit, relative to the project; None if git can't tell
    """

    at: str
    by: str
    commit: str | None
    modified: list[str] | None


class Choices(TypedDict):
    """The options of the command line that a plan was made with."""

    inventory: NotRequired[str | None]
    limit: NotRequired[str | None]
    tags: list[str]
    extra_vars: list[str]
    prune: bool
    prune_hosts: NotRequired[bool]
    become: NotRequired[bool | None]
    become_user: NotRequired[str | None]
    user: NotRequired[str | None]
    ssh_config: NotRequired[str | None]


class PlanInput(TypedDict):
    """A file that a plan was made from. `kind` is one of `inputs.CATEGORIES`."""

    kind: str
    path: str
    sha256: str


class SecretDigest(TypedDict):
    """The slow digest of a secret, and its salt; both in hex."""

    salt: str
    scrypt: str


class DefinitionDigests(TypedDict):
    """The digest of a host's definition, and of each of its nodes by name."""

    definition: str
    nodes: dict[str, str]


class InventoryData(TypedDict):
    """A host's data from the inventory. `vars` has a digest for each variable."""

    address: str
    port: int | None
    user: str | None
    proxy_jump: str | None
    become: str | None
    become_user: str
    python: str | None
    transport: str
    groups: list[str]
    vars: dict[str, str]


class PlannedHost(DefinitionDigests):
    """A host in a plan. `report` is its part of the report, in format 1.

    :ivar facts: path of each fact that its definition used → its value as JSON, or a digest of a long value
    """

    inventory: InventoryData
    report: HostData
    facts: NotRequired[dict[str, str]]


class SavedPlan(TypedDict):
    """A saved plan.

    :ivar run: the id of the run that made it
    :ivar project: the name of the project
    :ivar playbook: the playbook, relative to the project
    :ivar directory: the working directory, relative to the project
    :ivar store: the identity of the store; "" for a playbook without services
    :ivar salt: hides whether two plans have equal variables
    :ivar executor: the digest of the code for hosts
    :ivar sha256: the checksum in the file
    """

    run: str
    made: Made
    project: str
    playbook: str
    directory: str
    store: str
    salt: str
    executor: str
    choices: Choices
    inputs: list[PlanInput]
    secrets: dict[str, SecretDigest]
    hosts: dict[str, PlannedHost]
    sha256: NotRequired[str]
