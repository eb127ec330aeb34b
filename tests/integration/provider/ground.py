"""Objects of every kind to grant on, created outside the stack under test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.state import Sandbox

from tests.named_tokens import TokensAsNames

Props = dict[str, Any]

KINDS = ("server", "project", "warehouse", "namespace", "table", "view", "generic-table", "role", "tag")
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}

PRIVILEGES = {
    "allow-all": {
        "server": ("list_users", "create_project"),
        "view": ("get_metadata", "commit"),
        **dict.fromkeys(("project", "warehouse", "namespace", "table"), ("get_metadata", "delete")),
        **dict.fromkeys(("table", "generic-table"), ("get_metadata", "read_data")),
        "tag": ("read", "apply"),
    },
    "openfga": {
        "server": ("admin", "operator"),
        "role": ("ownership", "assignee"),
        "tag": ("apply", "ownership"),
        **dict.fromkeys(
            ("project", "warehouse", "namespace", "table", "view", "generic-table"), ("describe", "select")
        ),
    },
}
"""Two privileges on each kind of object, by authorizer."""


AUTHORIZERS: dict[str, Any] = {"allow-all": "allowall", "openfga": "openfga"}
"""Each authorizer as the server reports it, and as its settings name it."""

TOKEN = "GRANTING_TOKEN"
"""The variable that holds the stack's token, which is the name of its user."""


@dataclass(frozen=True)
class AuthorizerServer:
    """A running server with one authorizer."""

    authorizer: str
    endpoint: str
    storage: Sandbox

    def client(self, name: str = "operator") -> httpx.Client:
        """Return a client of a user, by default of the user who may do everything."""
        return httpx.Client(base_url=self.endpoint, headers={"authorization": f"Bearer {name}"}, timeout=60)


@contextmanager
def run_authorizer_server(
    authorizer: str, storage: Sandbox, directory: Path, **server_settings: Any
) -> Iterator[AuthorizerServer]:
    """Run a server that counts calls and can inject faults. `server_settings` are its further settings."""
    database = f"sqlite:///{directory / 'lakekeeper.db'}"
    settings = Settings(database=database, authorizer=AUTHORIZERS[authorizer], **server_settings)
    with serve(FaultSwitch(TokensAsNames(create_app(settings)))) as endpoint:
        running = AuthorizerServer(authorizer, endpoint, storage)
        with running.client() as client:
            accepted = {"accept-terms-of-use": True, "is-operator": True}
            client.post("/management/v1/bootstrap", json=accepted).raise_for_status()
        yield running


class PreparedProject:
    """A project that contains a warehouse, a namespace, a table of each kind, a view, a role and a tag; and users."""

    OWNER = frozenset({"oidc~operator"})

    def __init__(self, authorizer_server: AuthorizerServer, http: httpx.Client) -> None:
        self.authorizer, self.http, self._storage = authorizer_server.authorizer, http, authorizer_server.storage
        self.server: Props = {
            "endpoint": authorizer_server.endpoint,
            "auth": {"kind": "token", "token": f"env:{TOKEN}"},
        }
        """The server as the stack reaches it."""
        self.project_id = uuid.uuid4().hex[:12]
        self.http.headers["x-project-id"] = self.project_id
        self.post("/management/v1/project", {"project-id": self.project_id, "project-name": "ground"})
        self.role_id = str(self.post("/management/v1/role", {"name": "analysts"})["id"])
        self.users = self.new_users()
        self.warehouse_id = self._warehouse()
        self.make_namespace()
        self.make_table()
        self._view()
        files = {"name": "Files", "format": "lance"}
        self.post(f"/lakekeeper/v1/{self.warehouse_id}/namespaces/Sales/generic-tables", files)
        tag = {"name": "Personal", "scope": ["table"], "value-kind": "marker"}
        self.tag_id = str(self.post("/management/v1/tag-definition", tag)["id"])

    def new_users(self) -> dict[str, str]:
        """Return the ids of new users without grants, by name."""
        self.users = {name: f"oidc~{name}-{uuid.uuid4().hex[:12]}" for name in ("ann", "bob", "eve")}
        for user_id in self.users.values():
            self.post("/management/v1/user", {"id": user_id, "name": "x", "user-type": "human"})
        return self.users

    def post(self, path: str, body: Props) -> Props:
        response = self.http.post(path, json=body)
        assert response.is_success, f"{path}: {response.text}"
        return response.json() if response.content else {}

    def make_namespace(self) -> None:
        self.post(f"/catalog/v1/{self.warehouse_id}/namespaces", {"namespace": ["Sales"]})

    def make_table(self) -> None:
        body = {"name": "Orders", "schema": SCHEMA}
        self.post(f"/catalog/v1/{self.warehouse_id}/namespaces/Sales/tables", body)

    def drop_table(self) -> None:
        path = f"/catalog/v1/{self.warehouse_id}/namespaces/Sales/tables/Orders"
        self.http.delete(path, params={"purgeRequested": "true"}).raise_for_status()

    def rename_table(self, new_name: str) -> None:
        source, destination = ({"namespace": ["Sales"], "name": name} for name in ("Orders", new_name))
        self.post(f"/catalog/v1/{self.warehouse_id}/tables/rename", {"source": source, "destination": destination})

    def drop_table_softly(self) -> Props:
        """Drop the table so that it can be restored. Return the request that restores it."""
        target = {"type": "table", "id": self.table_id()}
        profile = {"type": "soft", "expiration-seconds": 86400}
        self.post(f"/management/v1/warehouse/{self.warehouse_id}/delete-profile", {"delete-profile": profile})
        self.drop_table()
        return {"targets": [target]}

    def restore_table(self, request: Props) -> None:
        self.post(f"/management/v1/warehouse/{self.warehouse_id}/deleted-tabulars/undrop", request)

    def build_target(self, kind: str) -> Props:
        """Return the object as a program names it, in another letter case: the server ignores case."""
        return {"type": kind} | {
            "server": {},
            "project": {"project_id": self.project_id},
            "role": {"project_id": self.project_id, "role_id": self.role_id},
            "tag": {"project_id": self.project_id, "name": "personal"},
            "warehouse": {"warehouse_id": self.warehouse_id},
            "namespace": {"warehouse_id": self.warehouse_id, "namespace": "sales"},
            "table": {"warehouse_id": self.warehouse_id, "namespace": "sales", "name": "orders"},
            "view": {"warehouse_id": self.warehouse_id, "namespace": "sales", "name": "daily"},
            "generic-table": {"warehouse_id": self.warehouse_id, "namespace": "sales", "name": "files"},
        }[kind]

    def holders(self, kind: str, privilege: str) -> set[tuple[str, str]]:
        """Return the kind (`user` or `role`) and id of each holder of a privilege on an object."""
        page = self.http.get(self.grants_path(kind), params={"pageSize": 1000}).raise_for_status().json()
        if self.authorizer == "openfga":
            entries = [(assignment["type"], assignment) for assignment in page["assignments"]]
        else:
            entries = [(grant["privilege"], grant["principal"]) for grant in page["grants"]]
        return {
            (name, principal[name])
            for entry_privilege, principal in entries
            for name in ("user", "role")
            if entry_privilege == privilege and name in principal
        }

    def grant(self, kind: str, privilege: str, **to: str) -> None:
        """Give a privilege to a `user` or `role`, outside the stack."""
        self.post(self.grants_path(kind), {"writes": [self._entry(privilege, to)]})

    def revoke(self, kind: str, privilege: str, **to: str) -> None:
        """Revoke a privilege, outside the stack."""
        self.post(self.grants_path(kind), {"deletes": [self._entry(privilege, to)]})

    def _entry(self, privilege: str, to: dict[str, str]) -> Props:
        return {"type": privilege, **to} if self.authorizer == "openfga" else {"privilege": privilege, "principal": to}

    def grants_path(self, kind: str) -> str:
        """Return the path of this authorizer's grants on an object of that kind."""
        id_readers = {
            "namespace": self.namespace_id,
            "table": self.table_id,
            "view": self.view_id,
            "generic-table": self.generic_table_id,
        }
        warehouse = f"warehouse/{self.warehouse_id}"
        if self.authorizer != "openfga":
            tag = f"tag-definition/{self.tag_id}"
            path = {"server": "server", "project": "project", "warehouse": warehouse, "tag": tag}.get(kind)
            return f"/management/v1/{path or f'{warehouse}/{kind}/{id_readers[kind]()}'}/grants"
        path = {
            "server": "server",
            "project": "project",
            "warehouse": warehouse,
            "role": f"role/{self.role_id}",
            "tag": f"tag/{self.tag_id}",
            "namespace": f"namespace/{self.namespace_id()}",
        }.get(kind)
        return f"/management/v1/permissions/{path or f'{warehouse}/{kind}/{id_readers[kind]()}'}/assignments"

    def namespace_id(self) -> str:
        path = f"/catalog/v1/{self.warehouse_id}/namespaces/Sales"
        return str(self.http.get(path).raise_for_status().json()["properties"]["namespace_id"])

    def table_id(self) -> str:
        return self._tabular_id("table")

    def view_id(self) -> str:
        return self._tabular_id("view")

    def generic_table_id(self) -> str:
        path = f"/lakekeeper/v1/{self.warehouse_id}/namespaces/Sales/generic-tables"
        return str(self.http.get(path).raise_for_status().json()["identifiers"][0]["id"])

    def _tabular_id(self, kind: str) -> str:
        path = f"/catalog/v1/{self.warehouse_id}/namespaces/Sales/{kind}s"
        page = self.http.get(path, params={"returnUuids": "true"}).raise_for_status().json()
        return str(page["table-uuids"][0])

    def drop_all(self) -> None:
        """Drop the warehouse and all of its contents."""
        path = f"/catalog/v1/{self.warehouse_id}/namespaces/Sales"
        drop_options = {"recursive": "true", "force": "true", "purge": "false"}
        self.http.delete(path, params=drop_options).raise_for_status()
        self.http.delete(f"/management/v1/warehouse/{self.warehouse_id}", params={"force": "true"}).raise_for_status()

    def clear(self, kind: str) -> None:
        """Revoke all grants on an object except the owner's."""
        for privilege in (*self.privileges(kind), *self.grant_privileges(kind)):
            for name, principal_id in self.holders(kind, privilege):
                if principal_id not in self.OWNER:
                    self.revoke(kind, privilege, **{name: principal_id})

    def grant_privileges(self, kind: str) -> tuple[str, ...]:
        """Return the privileges that count as grants on an object: membership of a role does not."""
        return tuple(privilege for privilege in self.privileges(kind) if privilege != "assignee")

    def privileges(self, kind: str) -> tuple[str, str]:
        return PRIVILEGES[self.authorizer][kind]

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of objects that this server has grants on."""
        return list(PRIVILEGES[self.authorizer])

    def _view(self) -> None:
        version: Props = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}}
        version |= {"representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}
        version |= {"default-namespace": ["Sales"]}
        body = {"name": "Daily", "schema": SCHEMA, "view-version": version, "properties": {}}
        self.post(f"/catalog/v1/{self.warehouse_id}/namespaces/Sales/views", body)

    def _warehouse(self) -> str:
        aws, admin = self._storage.aws, self._storage.admin
        bucket = f"grants-{self.project_id}"
        session = boto3.Session(admin.access_key_id, admin.secret_access_key.get_secret_value(), region_name=aws.region)
        session.client("s3", endpoint_url=aws.endpoint).create_bucket(Bucket=bucket)
        profile = {
            "type": "s3",
            "bucket": bucket,
            "region": aws.region,
            "endpoint": aws.endpoint,
            "flavor": "s3-compat",
            "path-style-access": True,
            "sts-enabled": False,
        }
        key = {
            "type": "s3",
            "credential-type": "access-key",
            "aws-access-key-id": admin.access_key_id,
            "aws-secret-access-key": admin.secret_access_key.get_secret_value(),
        }
        body = {"warehouse-name": "main", "storage-profile": profile, "storage-credential": key}
        return self.post("/management/v1/warehouse", body)["warehouse-id"]
