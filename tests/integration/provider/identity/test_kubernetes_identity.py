"""Identities of a cluster: service accounts' token files, and users whose ids begin with `kubernetes~`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.credentials.references import resolve
from lakewright.lakekeeper import get_grants
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NotAuthenticatedError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import projects, users
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.role_members import RoleMembersProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import SigningKey
from lakewright_sandbox.tokens.service_accounts import ServiceAccount

from tests.integration.provider.resource import Props, Resource

AUDIENCE = "lakekeeper"
CLIENT = OAuthClient("ci", "s3cret", audiences=(AUDIENCE,), scopes=())


class TrustedCluster:
    """The token issuer of a Kubernetes cluster, an identity provider, and a Lakekeeper that trusts both."""

    def __init__(self, folder: Path, stack: ExitStack, **settings: Any) -> None:
        self.idp, self._key = IdentityProvider({"ci": CLIENT}, SigningKey()), SigningKey()
        self.idp_issuer = stack.enter_context(serve(self.idp.app()))
        self.issuer = stack.enter_context(serve(IdentityProvider({}, self._key).app()))
        self._folder = folder
        server_settings = Settings(
            database=f"sqlite:///{folder / 'lakekeeper.db'}",
            authorizer="openfga",
            openid_provider_uri=self.idp_issuer,
            openid_audiences=(AUDIENCE,),
            kubernetes_issuer=self.issuer,
            **{"kubernetes_audiences": (AUDIENCE,), **settings},
        )
        self.endpoint = stack.enter_context(serve(create_app(server_settings)))
        self.deployer = ServiceAccount("platform", "deployer", str(uuid.uuid4()))
        accepted = {"accept-terms-of-use": True, "is-operator": True}
        token = self.sign_token(self.deployer, aud=server_settings.kubernetes_audiences or [self.issuer])
        headers = {"authorization": f"Bearer {token}"}
        httpx.post(f"{self.endpoint}/management/v1/bootstrap", json=accepted, headers=headers).raise_for_status()

    def sign_token(self, account: ServiceAccount, **claims: Any) -> str:
        return self._key.sign(account.claims(self.issuer, AUDIENCE) | claims)

    def server(self, account: ServiceAccount, **claims: Any) -> Props:
        """The server as a pod of the account reaches it: with the token file that the cluster renews."""
        file = self._folder / f"{account.name}-token"
        file.write_text(self.sign_token(account, **claims))
        return {"endpoint": self.endpoint, "auth": {"kind": "token-file", "path": str(file)}}

    def client(self, account: ServiceAccount, **claims: Any) -> Client:
        return Client(ServerRef.model_validate(self.server(account, **claims)), resolve)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., TrustedCluster]]:
    with ExitStack() as stack:
        yield lambda **settings: TrustedCluster(tmp_path_factory.mktemp("cluster"), stack, **settings)


@pytest.fixture(scope="module")
def cluster(start: Callable[..., TrustedCluster]) -> TrustedCluster:
    return start()


def job(name: str = "job") -> ServiceAccount:
    return ServiceAccount("tenant", f"{name}-{uuid.uuid4().hex[:8]}", str(uuid.uuid4()))


def test_service_account_is_identified_by_uid_or_name(
    cluster: TrustedCluster, start: Callable[..., TrustedCluster]
) -> None:
    assert users.ourselves(cluster.client(cluster.deployer)) == f"kubernetes~{cluster.deployer.uid}"
    by_name = start(kubernetes_subject="username")
    assert users.ourselves(by_name.client(by_name.deployer)) == "kubernetes~system:serviceaccount:platform:deployer"


def test_server_without_audiences_takes_the_issuer(start: Callable[..., TrustedCluster]) -> None:
    bare = start(kubernetes_audiences=())
    with pytest.raises(NotAuthenticatedError, match="401 AuthenticationFailed"):
        bare.client(job()).server()
    assert bare.client(job(), aud=[bare.issuer]).server()


def test_people_authenticate_with_the_identity_provider(cluster: TrustedCluster) -> None:
    claims = cluster.idp.claims(cluster.idp_issuer, CLIENT, AUDIENCE, "")
    headers = {"authorization": f"Bearer {cluster.idp.key.sign(claims)}"}
    httpx.post(f"{cluster.endpoint}/management/v1/user", json={}, headers=headers).raise_for_status()
    assert httpx.get(f"{cluster.endpoint}/management/v1/whoami", headers=headers).json()["id"] == "oidc~ci"


@pytest.mark.parametrize(
    "claims",
    [{"aud": ["https://kubernetes.default.svc"]}, {"exp": 1_000_000_000}, {"kubernetes.io": {}}, {"iss": "https://x"}],
    ids=str,
)
def test_wrong_or_missing_token_is_refused(cluster: TrustedCluster, claims: Props) -> None:
    with pytest.raises(NotAuthenticatedError, match="401 AuthenticationFailed"):
        cluster.client(job(), **claims).server()


def test_stack_in_the_cluster_owns_its_objects(cluster: TrustedCluster, unique: str) -> None:
    server = cluster.server(cluster.deployer)
    project = Resource(ProjectProvider())
    project.up(server=server, project_id=unique, name="ours")
    grants = get_grants(server=server, on={"type": "project", "project_id": unique})
    assert [(item.privilege, item.user) for item in grants] == [("project_admin", f"kubernetes~{cluster.deployer.uid}")]
    assert project.refresh() == "same"


def test_job_has_the_grants_of_its_service_account(cluster: TrustedCluster, unique: str) -> None:
    """The user is declared before the job's first call, by the uid that the cluster gave the account."""
    server, account = cluster.server(cluster.deployer), job()
    Resource(ProjectProvider()).up(server=server, project_id=unique, name="ours")
    job_client = cluster.client(account)
    with pytest.raises(ForbiddenError):
        projects.read_name(job_client, unique)
    user, grant = Resource(UserProvider()), Resource(GrantProvider())
    user.up(server=server, user_id=f"kubernetes~{account.uid}", name=account.name, user_type="application")
    on = {"type": "project", "project_id": unique}
    grant.up(server=server, on=on, privilege="describe", user=user.id)
    assert projects.read_name(job_client, unique) == "ours"
    assert (user.refresh(), grant.refresh()) == ("same", "same")


def test_recreated_account_is_another_user(cluster: TrustedCluster, unique: str) -> None:
    server, account = cluster.server(cluster.deployer), job()
    Resource(ProjectProvider()).up(server=server, project_id=unique, name="ours")
    on = {"type": "project", "project_id": unique}
    Resource(GrantProvider()).up(server=server, on=on, privilege="describe", user=f"kubernetes~{account.uid}")
    assert projects.read_name(cluster.client(account), unique) == "ours"
    recreated = ServiceAccount(account.namespace, account.name, str(uuid.uuid4()))
    with pytest.raises(ForbiddenError):
        projects.read_name(cluster.client(recreated), unique)


def test_account_that_called_first_is_taken_over(cluster: TrustedCluster, unique: str) -> None:
    """A pod may call before the stack creates its user. The server adds the user then."""
    server, account = cluster.server(cluster.deployer), job()
    Resource(ProjectProvider()).up(server=server, project_id=unique, name="ours")
    headers = {"authorization": f"Bearer {cluster.sign_token(account)}"}
    httpx.post(f"{cluster.endpoint}/management/v1/user", json={}, headers=headers).raise_for_status()
    user_props = {"user_id": f"kubernetes~{account.uid}", "name": "acme/cu", "user_type": "application"}

    assert list(Resource(UserProvider()).failures(server=server, **user_props)) == ["adopt"]
    user = Resource(UserProvider())
    user.up(server=server, **user_props, may_exist=True)

    user_response = users.get(cluster.client(cluster.deployer), user.id)
    assert user_response is not None
    assert user_response["name"] == "acme/cu"
    assert user.refresh() == "same"


def test_members_whom_the_server_does_not_know_are_registered(cluster: TrustedCluster, unique: str) -> None:
    server = cluster.server(cluster.deployer)
    Resource(ProjectProvider()).up(server=server, project_id=unique, name="ours")
    role, members = Resource(RoleProvider()), Resource(RoleMembersProvider())
    role.up(server=server, project_id=unique, name="analysts")
    new, deleted = (f"oidc~{unique}-{suffix}" for suffix in ("new", "deleted"))
    client = cluster.client(cluster.deployer)
    users.create(client, deleted, {"name": "gone", "user-type": "human"})
    users.delete(client, deleted)

    both = {"users": [new, deleted], "names": {new: "Ann", deleted: "Ben"}}
    members.up(server=server, project_id=unique, role_id=role.id, **both)

    assert [(users.get(client, user) or {})["name"] for user in (new, deleted)] == ["Ann", "Ben"]
    assert members.refresh() == "same"
    renamed = {"users": [new], "names": {new: "Ann Other"}}
    members.up(server=server, project_id=unique, role_id=role.id, **renamed)
    members.destroy()
    assert (users.get(client, new) or {})["name"] == "Ann"
