"""Look up the owner of an access key and its policies: users and roles of moto's IAM, sessions of the sandbox's STS."""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moto.iam.models import Role, User

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.errors import AwsError
from lakewright_sandbox.aws.moto_app import iam
from lakewright_sandbox.policies.callers import Caller
from lakewright_sandbox.policies.document import Policy, parse
from lakewright_sandbox.policies.evaluation import IdentityPolicies
from lakewright_sandbox.runtime.credentials import IamAccessKey, new_access_key
from lakewright_sandbox.typed.json_values import is_object

# Source: IAM, "AWS global condition context keys": anonymous requests have this value, and lack the other keys.
ANONYMOUS = Caller("anonymous", context={"aws:principalaccount": ["anonymous"]})


# The sandbox has one account. A user of this path acts as a user of another account, with the rights of its policies.
_OF_ACCOUNT = re.compile(r"/accounts/(\d{12})/")


@dataclass(frozen=True)
class Identity:
    """The owner of an access key, its policies, and the secret that signs its requests."""

    caller: Caller
    rights: IdentityPolicies
    access_key_id: str
    secret_access_key: str
    temporary: bool = False


@dataclass(frozen=True)
class Session:
    """Temporary credentials of a role, or of a user if `user_name` is set."""

    key: IamAccessKey
    token: str
    expires_at: datetime
    name: str
    issued_at: datetime
    role_arn: str | None
    user_name: str | None
    policies: tuple[Policy, ...] | None
    tags: dict[str, str]
    transitive_tags: frozenset[str]
    source_identity: str | None


class Sessions:
    """The open sessions. They end with the process, as all of moto's data do."""

    def __init__(self) -> None:
        """Start without sessions."""
        self._by_key: dict[str, Session] = {}

    def open(self, **details: Any) -> Session:
        """Return a new session with random keys."""
        key = new_access_key("ASIA")
        session = Session(key=key, token=secrets.token_urlsafe(192), **details)
        self._by_key[key.access_key_id] = session
        return session

    def get(self, access_key_id: str) -> Session | None:
        """Return the session of an access key."""
        return self._by_key.get(access_key_id)


class Directory:
    """Look up identities at each request, so that a changed policy takes effect at once."""

    def __init__(self) -> None:
        """Start without sessions."""
        self.sessions = Sessions()

    def identify(self, access_key_id: str, token: str | None, now: datetime) -> Identity:
        """Return the identity of an access key. Raises AwsError for an unknown key and for a wrong or expired token."""
        session = self.sessions.get(access_key_id)
        if session is not None:
            if token is None or not secrets.compare_digest(token.encode(), session.token.encode()):
                raise AwsError("InvalidToken", "The provided token is malformed or otherwise invalid.", 403)
            if now >= session.expires_at:
                raise AwsError("ExpiredToken", "The provided token has expired.", 403)
            return _session_identity(session)
        for user in iam().users.values():
            for key in user.access_keys:
                if key.access_key_id == access_key_id and key.status == "Active":
                    if token is not None:
                        raise AwsError("InvalidToken", "The provided token is malformed or otherwise invalid.", 403)
                    return Identity(
                        _user_caller(user, {}), _user_rights(user, None), access_key_id, key.secret_access_key
                    )
        raise AwsError("InvalidClientTokenId", "The AWS Access Key Id you provided does not exist in our records.", 403)


def find_role(arn: str) -> Role | None:
    """Return the role with an ARN."""
    return next((role for role in iam().roles.values() if role.arn == arn), None)


def find_managed_policy(arn: str) -> Policy | None:
    """Return the default version of a managed policy."""
    policy = iam().managed_policies.get(arn)
    return _default_version(policy) if policy else None


def _session_identity(session: Session) -> Identity:
    key = session.key.access_key_id, session.key.secret_access_key.get_secret_value()
    extra = {"aws:tokenissuetime": [session.issued_at.strftime("%Y-%m-%dT%H:%M:%SZ")]}
    extra["aws:multifactorauthpresent"] = ["false"]
    if session.source_identity:
        extra["aws:sourceidentity"] = [session.source_identity]
    if session.role_arn is None:
        user = iam().users.get(session.user_name or "")
        if user is None:
            raise AwsError("InvalidClientTokenId", "The user of this session no longer exists.", 403)
        rights = _user_rights(user, session.policies)
        return Identity(_user_caller(user, extra), rights, *key, temporary=True)
    role = find_role(session.role_arn)
    if role is None:
        raise AwsError("InvalidClientTokenId", "The role of this session no longer exists.", 403)
    caller = Caller(
        "role",
        account=ACCOUNT_ID,
        arn=f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{role.name}/{session.name}",
        identity_arn=role.arn,
        unique_id=role.id,
        context={
            **_identity_keys(role.arn, f"{role.id}:{session.name}", "AssumedRole", _tags(role.tags) | session.tags),
            **extra,
        },
    )
    rights = IdentityPolicies(
        identity=_list_attached_policies(role.policies, role.managed_policies),
        boundary=_boundary(role.permissions_boundary_arn),
        session=session.policies,
    )
    return Identity(caller, rights, *key, temporary=True)


def _user_caller(user: User, extra: dict[str, list[str]]) -> Caller:
    tags = _tags(iam().tagger.list_tags_for_resource(user.arn)["Tags"])
    account_path = _OF_ACCOUNT.fullmatch(user.path)
    account = account_path[1] if account_path else ACCOUNT_ID
    arn = f"arn:aws:iam::{account}:user/{user.name}" if account_path else user.arn
    context = _identity_keys(arn, user.id, "User", tags) | {"aws:username": [user.name]} | extra
    context["aws:principalaccount"] = [account]
    return Caller("user", account=account, arn=arn, identity_arn=arn, unique_id=user.id, context=context)


def _user_rights(user: User, session: tuple[Policy, ...] | None) -> IdentityPolicies:
    policies = _list_attached_policies(user.policies, user.managed_policies)
    for group in iam().groups.values():
        if user in group.users:
            policies += _list_attached_policies(group.policies, group.managed_policies)
    return IdentityPolicies(identity=policies, session=session)


def _list_attached_policies(inline: dict[str, str], managed: dict[str, Any]) -> tuple[Policy, ...]:
    inline_policies = (parse(document, "identity") for document in inline.values())
    return (*inline_policies, *(_default_version(policy) for policy in managed.values()))


def _default_version(policy: Any) -> Policy:
    version = next(version for version in policy.versions if version.is_default)
    return parse(version.document, "identity")


def _boundary(arn: str | None) -> Policy | None:
    if not arn:
        return None
    # A boundary that cannot be found allows nothing.
    return find_managed_policy(arn) or Policy(())


def _identity_keys(arn: str, user_id: str, kind: str, tags: dict[str, str]) -> dict[str, list[str]]:
    keys = {
        "aws:principalarn": [arn],
        "aws:userid": [user_id],
        "aws:principaltype": [kind],
        "aws:principalaccount": [ACCOUNT_ID],
        "aws:principalisawsservice": ["false"],
    }
    return keys | {f"aws:principaltag/{name.lower()}": [value] for name, value in tags.items()}


def _tags(tags: Any) -> dict[str, str]:
    if is_object(tags):
        return {name: _tag_value(tag) for name, tag in tags.items()}
    entries: list[dict[str, str]] = tags or []
    return {tag["Key"]: tag["Value"] for tag in entries}


def _tag_value(tag: Any) -> str:
    return tag["Value"] if is_object(tag) else tag
