"""Writes docs/reference/permissions.md: the permissions of every role on AWS, from its documents. `make docs`.

Stacks make the documents, and the sandbox evaluates them. Tests compare the page with the evaluation
and with calls, and remove each statement to see that the matrix changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakewright.aws.access import RolePurpose, access_policy, principal_trust, trust_policy
from lakewright.aws.bucket_policy import LOGGING_SERVICE, log_bucket_policy, tenant_bucket_policy
from lakewright.aws.catalog_identity import assume_policy, irsa_trust, pod_identity_trust, static_trust
from lakewright_sandbox.policies.callers import Caller
from lakewright_sandbox.policies.document import Policy, parse
from lakewright_sandbox.policies.evaluation import ActionRequest, IdentityPolicies, decide

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "permissions.md"

Document = dict[str, Any]
Documents = Mapping[str, Document]
Table = dict[str, dict[str, str]]
"""Cells by row and column."""

ACCOUNT, FOREIGN, UNKNOWN = "123456789012", "210987654321", "333333333333"
REGION = "us-east-1"
BUCKET, LOGS, PREFIX = "acme-lakehouse", "acme-logs", "acme/executions"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
CATALOG = f"arn:aws:iam::{ACCOUNT}:role/platform/lakekeeper"
CONSUMER = f"arn:aws:iam::{ACCOUNT}:role/consumer"
INSTANCE = f"arn:aws:iam::{ACCOUNT}:role/machines"
PROVIDER = f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/ABC"
ISSUER = PROVIDER.partition("/")[2]
CLUSTER = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/platform"
TENANT_ROLE = f"arn:aws:iam::{ACCOUNT}:role/lakewright/lakewright.acme.executions"
OTHER_ROLE = f"arn:aws:iam::{ACCOUNT}:role/administrators"

YES, NO, DENIED = "yes", "no", "denied"


def documents() -> dict[str, Document]:
    """Return every document that stacks make, by name. Purposes name the policies of roles."""
    rights = {
        str(purpose): access_policy(BUCKET, PREFIX, KEY, region=REGION, purpose=purpose) for purpose in RolePurpose
    }
    return {
        **rights,
        "trust of the catalog's roles": trust_policy(CATALOG, "own-id", session_tags=True),
        "trust of other roles": principal_trust(CONSUMER, "share-id"),
        "catalog's identity": assume_policy("aws", [ACCOUNT, FOREIGN]),
        "static trust": static_trust(INSTANCE),
        "IRSA trust": irsa_trust(PROVIDER, namespace="lakekeeper", service_account="server"),
        "Pod Identity trust": pod_identity_trust(
            account=ACCOUNT, namespace="lakekeeper", service_account="server", cluster_arn=CLUSTER
        ),
        "bucket": tenant_bucket_policy(BUCKET, REGION, ACCOUNT),
        "log bucket": log_bucket_policy(LOGS, REGION, ACCOUNT, [BUCKET], prefix=f"{BUCKET}/"),
    }


EVERYTHING: Document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
SECURE = {"aws:securetransport": ["true"], "aws:resourceaccount": [ACCOUNT]}


@dataclass(frozen=True)
class Probe:
    """One request: a row of the table of rights."""

    label: str
    action: str
    resource: str
    context: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


def _object(key: str, bucket: str = BUCKET) -> str:
    return f"arn:aws:s3:::{bucket}/{key}"


OWN, BESIDE = f"{PREFIX}/t/data/1.parquet", f"{PREFIX}2/t/data/1.parquet"
_ON_OBJECTS = (
    *("GetObject", "GetObjectVersion", "PutObject", "DeleteObject", "DeleteObjectVersion", "AbortMultipartUpload"),
    *("ListMultipartUploadParts", "GetObjectAcl", "PutObjectAcl", "GetObjectTagging", "PutObjectTagging"),
)
_ON_BUCKETS = ("GetBucketLocation", "GetBucketPolicy", "PutBucketPolicy", "PutLifecycleConfiguration", "DeleteBucket")


def _key_use(action: str, condition: str, object_arn: str, host: str | None = f"s3.{REGION}.amazonaws.com") -> Probe:
    via = {"kms:viaservice": [host]} if host else {}
    return Probe(
        f"`kms:{action}` {condition}", f"kms:{action}", KEY, {**via, "kms:encryptioncontext:aws:s3:arn": [object_arn]}
    )


def probes() -> list[Probe]:
    """Return the requests of the table of rights."""
    bucket = f"arn:aws:s3:::{BUCKET}"
    return [
        *(Probe(f"`s3:{name}` under the prefix", f"s3:{name}", _object(OWN)) for name in _ON_OBJECTS),
        *(
            Probe(f"`s3:{name}` under a prefix that begins alike", f"s3:{name}", _object(BESIDE))
            for name in ("GetObject", "PutObject", "DeleteObject")
        ),
        Probe("`s3:GetObject` of another tenant", "s3:GetObject", _object("other/executions/t/data/1.parquet")),
        Probe("`s3:GetObject` in another bucket", "s3:GetObject", _object(OWN, "other-lakehouse")),
        *(
            Probe(f"`s3:{name}` {scope}", f"s3:{name}", bucket, {"s3:prefix": [prefix]} if prefix is not None else {})
            for name in ("ListBucket", "ListBucketVersions")
            for scope, prefix in (
                ("of the prefix", f"{PREFIX}/"),
                ("of a prefix that begins alike", f"{PREFIX}2/"),
                ("of the bucket's root", None),
            )
        ),
        *(Probe(f"`s3:{name}`", f"s3:{name}", bucket) for name in _ON_BUCKETS),
        *(
            _key_use(action, "through S3 for an object under the prefix", _object(OWN))
            for action in ("Decrypt", "GenerateDataKey")
        ),
        _key_use("Decrypt", "through S3 for another object", _object(BESIDE)),
        _key_use("Decrypt", "without S3", _object(OWN), None),
        Probe("`kms:ScheduleKeyDeletion`", "kms:ScheduleKeyDeletion", KEY),
        Probe("`sts:AssumeRole` on another role", "sts:AssumeRole", OTHER_ROLE),
        Probe("`iam:PutRolePolicy` on itself", "iam:PutRolePolicy", TENANT_ROLE),
    ]


def rights_table(documents: Documents) -> Table:
    """Return what the role of each purpose may do, on its bucket with the bucket's policy."""
    return {
        probe.label: {
            str(purpose): _cell(
                _role(TENANT_ROLE),
                documents[str(purpose)],
                ActionRequest(probe.action, probe.resource, {**SECURE, **probe.context}),
                documents["bucket"] if probe.action.startswith("s3:") else None,
            )
            for purpose in RolePurpose
        }
        for probe in probes()
    }


@dataclass(frozen=True)
class Assumption:
    """A caller who calls STS: a row of the table of trust."""

    label: str
    caller: Caller
    rights: str | None
    """Name of the caller's policy; None for a policy that allows everything."""
    action: str = "sts:AssumeRole"
    context: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


def _role(arn: str, account: str = ACCOUNT) -> Caller:
    name = arn.rpartition("/")[2]
    keys = {
        "aws:principalarn": [arn],
        "aws:principalaccount": [account],
        "aws:principalisawsservice": ["false"],
    }
    return Caller("role", account, f"arn:aws:sts::{account}:assumed-role/{name}/session", arn, "AROA", keys)


def _service(name: str, **context: str) -> Caller:
    keys = {key.replace("__", ":").lower(): [value] for key, value in context.items()}
    return Caller("service", "", name, name, context={"aws:principalisawsservice": ["true"], **keys})


def _pod(
    namespace: str = "lakekeeper", service_account: str = "server", cluster: str = CLUSTER, account: str = ACCOUNT
) -> tuple[Caller, dict[str, list[str]]]:
    tags = {
        "eks-cluster-arn": cluster,
        "kubernetes-namespace": namespace,
        "kubernetes-service-account": service_account,
    }
    request = {f"aws:requesttag/{name}": [value] for name, value in tags.items()}
    return _service("pods.eks.amazonaws.com", aws__sourceaccount=account), request


def _make_token(namespace: str, audience: str) -> tuple[Caller, dict[str, list[str]]]:
    claims = {"sub": f"system:serviceaccount:{namespace}:server", "aud": audience}
    keys = {f"{ISSUER}:{name}".lower(): [value] for name, value in claims.items()}
    return Caller("web-identity", ACCOUNT, PROVIDER, PROVIDER), keys


def assumptions() -> list[Assumption]:
    """Return the callers of the table of trust."""
    own_context, share_context = {"sts:externalid": ["own-id"]}, {"sts:externalid": ["share-id"]}
    tags = {"aws:requesttag/tenant": ["acme"], "aws:tagkeys": ["tenant"]}
    web = "sts:AssumeRoleWithWebIdentity"
    foreign = f"arn:aws:iam::{FOREIGN}:role/administrators"
    pod, pod_tags = _pod()
    token, claims = _make_token("lakekeeper", "sts.amazonaws.com")
    other_token, other_claims = _make_token("texera", "sts.amazonaws.com")
    wrong_token, wrong_claims = _make_token("lakekeeper", "kubernetes.default.svc")
    identity = "catalog's identity"
    return [
        Assumption("catalog's identity with the external ID", _role(CATALOG), identity, context=own_context),
        Assumption("catalog's identity with session tags", _role(CATALOG), identity, "sts:TagSession", tags),
        Assumption("catalog's identity without external ID", _role(CATALOG), identity),
        Assumption(
            "catalog's identity with the external ID of another role", _role(CATALOG), identity, context=share_context
        ),
        Assumption("consumer with its external ID", _role(CONSUMER), None, context=share_context),
        Assumption("consumer without external ID", _role(CONSUMER), None),
        Assumption("role of a warehouse with the external ID", _role(TENANT_ROLE), None, context=own_context),
        Assumption("administrator of the account with the external ID", _role(OTHER_ROLE), None, context=own_context),
        Assumption(
            "administrator of another account with the external ID", _role(foreign, FOREIGN), None, context=own_context
        ),
        Assumption("machines that run Lakekeeper", _role(INSTANCE), None),
        Assumption("Lakekeeper's ServiceAccount (IRSA)", token, None, web, claims),
        Assumption("ServiceAccount of another namespace (IRSA)", other_token, None, web, other_claims),
        Assumption("Lakekeeper's ServiceAccount, token for another audience", wrong_token, None, web, wrong_claims),
        Assumption("Lakekeeper's ServiceAccount (Pod Identity)", pod, None, context=pod_tags),
        Assumption("its session tags (Pod Identity)", pod, None, "sts:TagSession", pod_tags),
        *(
            Assumption(f"{label} (Pod Identity)", other, None, context=tags)
            for label, (other, tags) in {
                "ServiceAccount of another namespace": _pod(namespace="texera"),
                "another ServiceAccount of the namespace": _pod(service_account="default"),
                "ServiceAccount of another cluster": _pod(cluster=f"{CLUSTER}-2"),
                "ServiceAccount of another account": _pod(account=FOREIGN),
            }.items()
        ),
    ]


_TRUSTS = {
    "catalog, vending": ("trust of the catalog's roles", TENANT_ROLE),
    "maintenance, share": ("trust of other roles", f"{TENANT_ROLE}.share-bi"),
    "catalog's identity (static)": ("static trust", CATALOG),
    "catalog's identity (IRSA)": ("IRSA trust", CATALOG),
    "catalog's identity (Pod Identity)": ("Pod Identity trust", CATALOG),
}


def trust_table(documents: Documents) -> Table:
    """Return who may assume or tag which role."""
    return {
        row.label: {
            column: _cell(
                row.caller,
                EVERYTHING if row.rights is None else documents[row.rights],
                ActionRequest(row.action, role, {**SECURE, **row.context}),
                documents[trust],
                kind="trust",
            )
            for column, (trust, role) in _TRUSTS.items()
        }
        for row in assumptions()
    }


def identity_table(documents: Documents) -> Table:
    """Return what the catalog's identity may do itself. Every role here would trust it."""
    trusting = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": CATALOG}}]}
    rows = {
        "`sts:AssumeRole` on `role/lakewright/*`": ("sts:AssumeRole", TENANT_ROLE),
        "`sts:TagSession` on `role/lakewright/*`": ("sts:TagSession", TENANT_ROLE),
        "`sts:AssumeRole` on a role without the path": ("sts:AssumeRole", OTHER_ROLE),
        "`sts:AssumeRole` on `role/lakewright.acme.executions`": (
            "sts:AssumeRole",
            f"arn:aws:iam::{ACCOUNT}:role/lakewright.acme.executions",
        ),
        **{
            f"`{action}` on `role/lakewright/*` of another account in its policy": (
                action,
                TENANT_ROLE.replace(ACCOUNT, FOREIGN),
            )
            for action in ("sts:AssumeRole", "sts:TagSession")
        },
        "`sts:AssumeRole` on `role/lakewright/*` of any other account": (
            "sts:AssumeRole",
            TENANT_ROLE.replace(ACCOUNT, UNKNOWN),
        ),
        "`s3:GetObject`": ("s3:GetObject", _object(OWN)),
        "`iam:CreateRole` on `role/lakewright/*`": ("iam:CreateRole", TENANT_ROLE),
    }
    table: Table = {}
    for label, (action, resource) in rows.items():
        trust = {**trusting, "Statement": [{**trusting["Statement"][0], "Action": action}]}
        is_sts = action.startswith("sts:")
        owner = resource.split(":")[4] or ACCOUNT
        request = ActionRequest(action, resource, {**SECURE, "aws:resourceaccount": [owner]})
        cell = _cell(_role(CATALOG), documents["catalog's identity"], request, trust if is_sts else None, kind="trust")
        table[label] = {"catalog's identity": cell}
    return table


def bucket_table(documents: Documents) -> Table:
    """Return who is denied by the policies of buckets, whatever other policies allow."""
    plain = {**SECURE, "aws:securetransport": ["false"]}
    foreign = _role(f"arn:aws:iam::{FOREIGN}:role/administrators", FOREIGN)
    anonymous = Caller("anonymous", context={"aws:principalaccount": ["anonymous"]})

    def make_logging_caller(source: str, account: str = ACCOUNT) -> Caller:
        return _service(LOGGING_SERVICE, aws__sourcearn=f"arn:aws:s3:::{source}", aws__sourceaccount=account)

    rows: dict[str, tuple[Caller, Mapping[str, Sequence[str]]]] = {
        "role of the account that may do everything": (_role(OTHER_ROLE), SECURE),
        "the same without TLS": (_role(OTHER_ROLE), plain),
        "role of another account that may do everything": (foreign, SECURE),
        "anonymous": (anonymous, SECURE),
        "S3's logging service for this bucket": (make_logging_caller(BUCKET), SECURE),
        "S3's logging service for another bucket": (make_logging_caller("other-lakehouse"), SECURE),
        "S3's logging service for a bucket of that name in another account": (
            make_logging_caller(BUCKET, FOREIGN),
            SECURE,
        ),
        "another AWS service": (_service("cloudtrail.amazonaws.com", aws__sourceaccount=ACCOUNT), SECURE),
    }
    places = {"bucket": _object(OWN), "log bucket": _object(f"{BUCKET}/2026-11-01-00-00-00-ABC", LOGS)}
    return {
        label: {
            column: _cell(
                caller,
                EVERYTHING if caller.has_policies else None,
                ActionRequest("s3:PutObject", resource, context),
                documents[column],
            )
            for column, resource in places.items()
        }
        for label, (caller, context) in rows.items()
    }


def matrix(documents: Documents) -> dict[str, Table]:
    """Return the tables of the page, by heading."""
    return {
        "What may a role do?": rights_table(documents),
        "Who may assume a role?": trust_table(documents),
        "What may the catalog's identity do?": identity_table(documents),
        "Whom do the buckets' policies let write?": bucket_table(documents),
    }


def _cell(
    caller: Caller,
    rights: Document | None,
    request: ActionRequest,
    resource: Document | None,
    *,
    kind: str = "resource",
) -> str:
    identity = IdentityPolicies((_parse_policy(rights, "identity"),) if rights else ())
    policy = _parse_policy(resource, kind) if resource else None
    decision = decide(caller, identity, request, policy, trust_needed=kind == "trust" and resource is not None)
    if decision.allowed:
        return YES
    return DENIED if "explicit deny" in decision.message else NO


def _parse_policy(document: Document, kind: Any) -> Policy:
    return parse(json.dumps(document), kind) if document["Statement"] else Policy(())


_INTRODUCTION = f"""# What may each AWS role do?

Made by `make docs` from the documents in `components/lakewright/aws`. Tests compare these tables with the documents,
confirm them by calls to the sandbox, and check that a table changes if any statement is removed.

The tables show tenant `acme` with a bucket `{BUCKET}` that has its own KMS key, and the role of a warehouse with
the prefix `{PREFIX}`. `{YES}`: allowed. `{NO}`: not allowed. `{DENIED}`: denied, whatever other policies allow.

| role | made for | with |
|---|---|---|
| `catalog` | Lakekeeper's own access and vended credentials | `delegation: vended` |
| `own-access` | Lakekeeper's own access | `vending_role: true` |
| `vending` | vended credentials | `vending_role: true` |
| `signing` | Lakekeeper's own access and the requests that it signs | `delegation: remote-signing` |
| `maintenance` | maintenance outside the catalog | `maintenance_role` |
| `share` | a consumer outside the catalog | `shares` |

Vended credentials have less: their session policy limits them to one table. A permissions boundary
(`aws.permissions_boundary` of the environment) limits every role further.
"""


_DEPLOYER = """
## What does the identity that runs the program need, to compare owners?

[Marks](../guides/taking-over.md) say which stack owns an object. A run that may not read or write a mark stops, and
names the right that is missing. Names in brackets are relations of OpenFGA in Lakekeeper 0.13.

| right | on | for |
|---|---|---|
| `list_roles` (`describe`) | the project | reading its mark, in each `preview`, `up` and `destroy` |
| `create_role` (`role_creator`) | the project | the first mark of an existing project, checked before any creation |
| `update`, `delete` (`ownership`, `security_admin`) | role `lakewright-record` | changing it; deleting the project |
| `get_metadata` (`describe`) | warehouses | deleting namespaces, tables and grants in them |
| `s3:GetBucketTagging`, `s3:PutBucketTagging` | buckets | reading and writing the mark of a bucket |
| `kms:ListResourceTags` | the keys of buckets | deleting and adopting a key |
| `kms:DescribeKey` | the keys of buckets | a new key, and the alias of a key that is deleted |
| `iam:GetRole` | roles of warehouses | adopting a role |

The creator of a project has the first four rights in it. A tenant's user who has none of `role_creator`,
`security_admin` and the ownership of a role in the project can neither write nor remove a mark. Groups that an identity
provider synchronizes as roles are never a mark, whatever their names are.
"""


def page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for heading, table in matrix(documents()).items():
        columns = list(next(iter(table.values())))
        lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        lines += [f"| {row} | {' | '.join(cells[column] for column in columns)} |" for row, cells in table.items()]
        parts.append(f"\n## {heading}\n\n" + "\n".join(lines) + "\n")
    return "".join([*parts, _DEPLOYER])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
