"""IAM documents of the identity that Lakekeeper runs as: what it may do, and who may assume it. Pure functions.

The identity may assume and tag roles of the path `/lakewright/`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakewright.names.object_names import ROLE_PATH

Policy = dict[str, Any]


def assume_policy(partition: str, accounts: Sequence[str], *, with_former_roles: bool = False) -> Policy:
    """Return the only policy of the catalog's identity.

    Within an account, IAM lets a principal assume every role whose trust policy names it, without a policy of its own.
    Roles of other paths are therefore denied.

    Args:
        partition: AWS partition, such as `aws`.
        accounts: IDs of the accounts that have roles of tenants; `*` for any account.
        with_former_roles: Whether to include roles that earlier versions made, which have no path.
    """
    names = [ROLE_PATH.lstrip("/") + "*", *(["lakewright.*"] if with_former_roles else [])]
    roles = [f"arn:{partition}:iam::{account}:role/{name}" for account in accounts for name in names]
    actions, role_arns = ["sts:AssumeRole", "sts:TagSession"], roles[0] if len(roles) == 1 else roles
    statements = [
        {"Sid": "AssumeTenantRoles", "Effect": "Allow", "Action": actions, "Resource": role_arns},
        {"Sid": "NoOtherRoles", "Effect": "Deny", "Action": actions, "NotResource": role_arns},
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def static_trust(principal_arn: str) -> Policy:
    """Return the trust policy for a principal, such as the instance role of the machines that run Lakekeeper."""
    return _trust("PrincipalAssumes", {"AWS": principal_arn}, "sts:AssumeRole")


def irsa_trust(
    oidc_provider_arn: str, *, namespace: str, service_account: str, audience: str = "sts.amazonaws.com"
) -> Policy:
    """Return the trust policy for one ServiceAccount of a cluster whose OIDC provider IAM knows (IRSA).

    Source: EKS, "Assign IAM roles to Kubernetes service accounts".

    Args:
        oidc_provider_arn: ARN of the IAM OIDC provider, `arn:aws:iam::ACCOUNT:oidc-provider/HOST/PATH`.
        namespace: Namespace of Lakekeeper's pods.
        service_account: ServiceAccount of Lakekeeper's pods.
        audience: Audience of the projected tokens.

    Raises:
        ValueError: The ARN is not that of an OIDC provider.
    """
    _, separator, issuer = oidc_provider_arn.partition(":oidc-provider/")
    if not separator or not issuer:
        raise ValueError(
            "expected the ARN of an IAM OIDC provider, `arn:aws:iam::ACCOUNT:oidc-provider/HOST/PATH`; found"
            f" {oidc_provider_arn}"
        )
    condition = {
        "StringEquals": {
            f"{issuer}:aud": audience,
            f"{issuer}:sub": f"system:serviceaccount:{namespace}:{service_account}",
        }
    }
    return _trust("ServiceAccountAssumes", {"Federated": oidc_provider_arn}, "sts:AssumeRoleWithWebIdentity", condition)


def pod_identity_trust(*, account: str, namespace: str, service_account: str, cluster_arn: str | None = None) -> Policy:
    """Return the trust policy for one ServiceAccount through EKS Pod Identity.

    EKS tags the sessions. The tags are transitive, so the trust policy of each tenant role must allow
    `sts:TagSession` too. Source: EKS, "Create IAM role with trust policy required by EKS Pod Identity" and "Grant Pods
    access to AWS resources based on tags".

    Args:
        account: ID of the cluster's account.
        namespace: Namespace of Lakekeeper's pods.
        service_account: ServiceAccount of Lakekeeper's pods.
        cluster_arn: ARN of the cluster; None for any cluster of the account.
    """
    tags = {
        "eks-cluster-arn": cluster_arn,
        "kubernetes-namespace": namespace,
        "kubernetes-service-account": service_account,
    }
    equal = {f"aws:RequestTag/{name}": value for name, value in tags.items() if value is not None}
    return _trust(
        "PodIdentityAssumes",
        {"Service": "pods.eks.amazonaws.com"},
        ["sts:AssumeRole", "sts:TagSession"],
        {"StringEquals": {"aws:SourceAccount": account, **equal}},
    )


def _trust(
    sid: str, principal: dict[str, str], action: str | list[str], condition: dict[str, Any] | None = None
) -> Policy:
    statement: dict[str, Any] = {"Sid": sid, "Effect": "Allow", "Principal": principal, "Action": action}
    if condition:
        statement["Condition"] = condition
    return {"Version": "2012-10-17", "Statement": [statement]}
