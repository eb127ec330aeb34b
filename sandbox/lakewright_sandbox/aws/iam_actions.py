"""The resource that an IAM request is about, and checks of its policy documents."""

import re

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.directory import find_role
from lakewright_sandbox.aws.errors import AwsError, invalid_value
from lakewright_sandbox.aws.moto_app import iam
from lakewright_sandbox.policies.document import MalformedPolicyError, PolicyKind, parse

NAMESPACE = "https://iam.amazonaws.com/doc/2010-05-08/"

_KINDS = (
    ("RoleName", "role"),
    ("UserName", "user"),
    ("GroupName", "group"),
    ("InstanceProfileName", "instance-profile"),
)
_DOCUMENTS: tuple[tuple[str, str, PolicyKind], ...] = (
    ("AssumeRolePolicyDocument", "CreateRole", "trust"),
    ("PolicyDocument", "UpdateAssumeRolePolicy", "trust"),
    ("PolicyDocument", "", "identity"),
)


_DESCRIPTION = re.compile(r"[\t\n\r -~\u00a1-\u00ff]{0,1000}")
"""Description of a role. Source: IAM API Reference, "CreateRole"."""


def resource(parameters: dict[str, str]) -> str:
    """Return the ARN that a call is about; `*` for calls such as listing that are about no single object."""
    if parameters.get("PolicyArn") and "RoleName" not in parameters and "UserName" not in parameters:
        return parameters["PolicyArn"]
    for name, kind in _KINDS:
        if parameters.get(name):
            path = parameters.get("Path") or _path(kind, parameters[name])
            return f"arn:aws:iam::{ACCOUNT_ID}:{kind}{path}{parameters[name]}"
    if parameters.get("PolicyName"):
        return f"arn:aws:iam::{ACCOUNT_ID}:policy{parameters.get('Path') or '/'}{parameters['PolicyName']}"
    return "*"


def check_documents(parameters: dict[str, str]) -> None:
    """Check policy documents before they are stored. Raises AwsError for a malformed document."""
    action = parameters.get("Action", "")
    if "PermissionsBoundary" in parameters and not action.endswith(("Role", "RolePermissionsBoundary")):
        raise AwsError("InvalidInput", "The sandbox supports permissions boundaries of roles only, not of users.")
    if action.endswith("Role") and not _DESCRIPTION.fullmatch(parameters.get("Description", "")):
        pattern = "[\\u0009\\u000A\\u000D\\u0020-\\u007E\\u00A1-\\u00FF]*"
        raise invalid_value("description", "...", f"regular expression pattern: {pattern}")
    for parameter, required_action, kind in _DOCUMENTS:
        if parameter in parameters and required_action in ("", action):
            try:
                policy = parse(parameters[parameter], kind)
            except MalformedPolicyError as error:
                raise AwsError("MalformedPolicyDocument", str(error)) from None
            if kind == "trust":
                require_known_principals(
                    {entry for s in policy.statements if s.principals for entry in s.principals.aws}
                )
            return


def require_known_principals(entries: set[str]) -> None:
    """Raise AwsError for a principal of this account that does not exist: AWS checks them when a policy is stored."""
    principal_pattern = re.compile(rf"arn:aws:iam::{ACCOUNT_ID}:(user|role)/(.+)")
    for entry in sorted(entries):
        principal = principal_pattern.fullmatch(entry)
        users = {user.arn for user in iam().users.values()}
        if principal and entry not in users and find_role(entry) is None:
            raise AwsError("MalformedPolicyDocument", f'Invalid principal in policy: "AWS":"{entry}"')


def _path(kind: str, name: str) -> str:
    if kind == "role":
        return next((role.path for role in iam().roles.values() if role.name == name), "/")
    user = iam().users.get(name) if kind == "user" else None
    return user.path if user else "/"
