"""Uses the API with the unmodified container-service-extension. The Python of .venv-cse runs this program.

It reads {"url", "administrator", "author", "member"} from stdin, and writes its results as one JSON object.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import sys
import time
import urllib.request

# isort: off
import cse_python  # noqa: F401  # must come before the package

# The package has circular imports, which work only if this module comes first.
import container_service_extension.common.utils.pyvcloud_utils  # noqa: F401  # it patches the client when it is imported

# isort: on
from container_service_extension.exception.exceptions import DefEntityServiceError
from container_service_extension.lib.cloudapi.cloudapi_client import CloudApiClient
from container_service_extension.rde.behaviors.behavior_model import (
    Behavior,
    BehaviorAclEntry,
    BehaviorOperation,
    Execution,
)
from container_service_extension.rde.behaviors.behavior_service import BehaviorService
from container_service_extension.rde.common.entity_service import DefEntityService
from container_service_extension.rde.models.common_models import DefEntity, DefEntityType2_0, DefInterface
from container_service_extension.rde.models.rde_factory import get_rde_model
from container_service_extension.rde.schema_service import DefSchemaService
from container_service_extension.rde.utils import load_rde_schema

CONTENT = {
    "apiVersion": "cse.vmware.com/v2.1",
    "kind": "native",
    "metadata": {"name": "c1", "orgName": "acme", "virtualDataCenterName": "vdc1", "site": "here"},
    "spec": {
        "topology": {"workers": {"count": 1}, "controlPlane": {"count": 1}},
        "settings": {"ovdcNetwork": "net", "network": {"expose": False}},
        "distribution": {"templateName": "k", "templateRevision": 1},
    },
}
READ_WRITE = "urn:vcloud:accessLevel:ReadWrite"


class Asked(CloudApiClient):
    """The client, which calls `before_put` before it sends a PUT request."""

    before_put = None

    def do_request(self, method, **given):
        if method.value.lower() == "put" and self.before_put is not None:
            self.before_put()
        return super().do_request(method, **given)


class Drive:
    """Runs all steps in order, and collects the results in `seen`."""

    def __init__(self, given):
        self.given = given
        self.admin = self.client(given["administrator"], True)
        self.schemas, self.behaviors = DefSchemaService(self.admin), BehaviorService(self.admin)
        self.entities = DefEntityService(self.admin)
        self.seen = {}

    def client(self, token, is_administrator):
        quiet = logging.getLogger("quiet")
        quiet.disabled = True
        return Asked(f"{self.given['url']}/cloudapi", token, "36.0", quiet, quiet, False, is_administrator)

    def run(self):
        for part in (self.define, self.create, self.update, self.share, self.delete, self.undefine):
            part()
        return self.seen

    def define(self):
        made = self.schemas.create_interface(DefInterface(name="CSE_K8s_interface"))
        self.schemas.update_interface(DefInterface(name="renamed", id=made.id))
        self.interface = self.schemas.get_interface(made.id)
        self.seen["interface"] = [self.interface.id, self.interface.name]
        self.seen["interfaces"] = [each.id for each in self.schemas.list_interfaces()]
        hooks = {}
        operations = {
            "PostCreate": BehaviorOperation.CREATE_CLUSTER,
            "PostUpdate": BehaviorOperation.UPDATE_CLUSTER,
            "PreDelete": BehaviorOperation.DELETE_CLUSTER,
        }
        for hook, operation in operations.items():
            behavior = dataclasses.replace(operation.value)
            behavior.execution = Execution(id="hooks:note", type="Function")
            behavior.execution.execution_properties.actAsToken = False
            added = self.behaviors.create_behavior_on_interface(behavior, self.interface.id)
            assert added.id == added.ref == behavior.id, added
            hooks[hook] = added.id
        self.invoked = self.behaviors.create_behavior_on_interface(
            Behavior(name="ask", execution=Execution(id="noop", type="noop")), self.interface.id
        )
        found = self.behaviors.list_behaviors_on_interface(self.interface.id)
        self.seen["behaviors"] = sorted(each.name for each in found)
        kind = DefEntityType2_0(
            name="nativeClusterEntityType",
            description="",
            schema=load_rde_schema("schema_2_1_0.json"),
            interfaces=[self.interface.id],
            version="2.1.0",
            hooks=hooks,
        )
        made = self.schemas.create_entity_type(kind)
        self.type = self.schemas.get_entity_type(made.id)
        self.seen["type"] = self.type.id
        self.seen["types"] = [each.id for each in self.schemas.list_entity_types({"nss": "nativeCluster"})]
        self.seen["latest"] = self.schemas.get_latest_registered_schema_version()
        ask = self.behaviors.get_behavior_on_entity_type_by_name("ask", self.type.id)
        self.behaviors.override_behavior_on_entity_type(dataclasses.replace(ask, description="mine"), self.type.id)
        changed = self.behaviors.get_behavior_on_entity_type_by_id(self.invoked.id, self.type.id)
        self.seen["override"] = [changed.id != self.invoked.id, changed.ref == self.invoked.id, changed.description]
        wanted = [BehaviorAclEntry(self.invoked.id, READ_WRITE)]
        self.behaviors.update_behavior_acls_on_entity_type(self.type.id, wanted)
        listed = self.behaviors.list_behavior_acls_on_entity_type(self.type.id)
        # The list of the client requests the same page forever.
        self.seen["acls"] = [dataclasses.asdict(each) for each in itertools.islice(listed, 1)]

    def create(self):
        content = get_rde_model("2.1.0").from_dict(CONTENT)
        entity = DefEntity(entity=content, entityType=self.type.id, name="c1")
        _, location = self.entities.create_entity(self.type.id, entity, is_request_async=True)
        task = self.finished(location)
        self.seen["created"] = [task["status"], task["operationName"]]
        self.id = task["owner"]["id"]
        self.seen["state"] = self.entities.get_entity(self.id).state
        place = "cse", "nativeCluster", "2.1.0"
        by_type = self.entities.list_entities_by_entity_type(*place, {"name": "c1", "state": "RESOLVED"})
        self.seen["by type"] = [each.id == self.id for each in by_type]
        self.seen["by interface"] = [
            each.id == self.id for each in self.entities.list_entities_by_interface("cse", "k8s", "1.0.0")
        ]
        page = self.entities.get_entities_per_page_by_entity_type(*place, page_number=1, page_size=5)
        self.seen["page"] = [page["resultTotal"], [each.id == self.id for each in page["values"]]]
        page = self.entities.get_all_entities_per_page_by_interface(
            "cse", "k8s", "1.0.0", {"name": "c1"}, include_entity_type_ids=[self.type.id]
        )
        self.seen["page of interface"] = page["resultTotal"]
        named = self.entities.get_native_rde_by_name_and_rde_version("c1", "2.1.0")
        self.seen["by name"] = named is not None and named.id == self.id
        self.seen["resolved"] = self.entities.resolve_entity(self.id).state
        location = self.behaviors.invoke_behavior(self.id, self.invoked.id, {"question": "why"})
        self.seen["invoked"] = self.finished(location)["status"]

    def update(self):
        other = DefEntityService(self.client(self.given["administrator"], True))
        puts = []

        def interfere():
            # Another client changes the entity before the first PUT, so that the read entity is stale.
            puts.append(1)
            if len(puts) == 1:
                other.update_entity(self.id, changes={"externalId": "theirs"})

        self.admin.before_put = interfere
        after = self.entities.update_entity(self.id, changes={"name": "c2"})
        self.admin.before_put = None
        self.seen["stale"] = [len(puts), after.name, self.entities.get_entity(self.id).externalId]
        _, location = self.entities.update_entity(
            self.id, invoke_hooks=True, is_request_async=True, changes={"name": "c3"}
        )
        self.seen["hook"] = [self.finished(location)["operationName"], self.entities.get_entity(self.id).name]

    def share(self):
        tenant = DefEntityService(self.client(self.given["author"], False))
        self.seen["before"] = self.refusal(tenant.get_entity, self.id)
        grant = "MembershipAccessControlGrant"
        self.entities.create_acl_for_entity(self.id, grant, READ_WRITE, self.given["member"])
        self.seen["after"] = tenant.get_entity(self.id).name
        self.seen["changed"] = tenant.update_entity(self.id, changes={"name": "c4"}).name
        self.seen["not deleted"] = self.refusal(tenant.delete_entity, self.id)

    def delete(self):
        _, location = self.entities.delete_entity(self.id, invoke_hooks=True, is_request_async=True)
        task = self.finished(location)
        self.seen["deleted"] = [task["status"], task["operationName"], self.refusal(self.entities.get_entity, self.id)]
        content = get_rde_model("2.1.0").from_dict(CONTENT)
        entity = DefEntity(entity=content, entityType=self.type.id, name="c5")
        _, location = self.entities.create_entity(self.type.id, entity, is_request_async=True)
        owner = self.finished(location)["owner"]["id"]
        self.entities.force_delete_entity(owner)
        self.seen["left"] = list(self.entities.list_entities_by_entity_type("cse", "nativeCluster", "2.1.0"))

    def undefine(self):
        self.behaviors.delete_behavior_on_entity_type(self.invoked.id, self.type.id)
        self.schemas.delete_entity_type(self.type.id)
        for behavior in list(self.behaviors.list_behaviors_on_interface(self.interface.id)):
            self.behaviors.delete_behavior_on_interface(behavior.id, self.interface.id)
        self.schemas.delete_interface(self.interface.id)
        self.seen["nothing"] = [list(self.schemas.list_entity_types()), list(self.schemas.list_interfaces())]

    @staticmethod
    def refusal(call, *arguments):
        try:
            call(*arguments)
        except DefEntityServiceError as problem:
            return type(problem).__name__
        return "allowed"

    def finished(self, location):
        """Wait until a task has ended. Return it."""
        headers = {"Accept": "application/*+json;version=36.0"}
        headers["Authorization"] = f"Bearer {self.given['administrator']}"
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with urllib.request.urlopen(urllib.request.Request(location, headers=headers), timeout=30) as answer:
                task = json.load(answer)
            if task["status"] in ("success", "error"):
                return task
            time.sleep(0.05)
        raise TimeoutError(f"{location} did not end")


if __name__ == "__main__":
    print(json.dumps(Drive(json.load(sys.stdin)).run()))
