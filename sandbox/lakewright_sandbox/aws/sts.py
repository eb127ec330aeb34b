"""STS: AssumeRole with trust policies, external ids, session policies and tags; GetCallerIdentity; GetSessionToken.

Sources: IAM User Guide, "Permissions for AssumeRole, AssumeRoleWithSAML, and AssumeRoleWithWebIdentity" (a session has
what both the role's and the session policies allow) and "Methods to assume a role" (durations, role chaining); STS API
Reference, "AssumeRole" (limits of the parameters).

AssumeRole without a RoleArn is an extension of S3-compatible stores such as MinIO: a session of the calling user,
limited by the session policy.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from xml.sax.saxutils import escape

from moto.iam.models import Role

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.directory import Directory, Identity, Session, find_managed_policy, find_role
from lakewright_sandbox.aws.errors import AwsAccessDeniedError, AwsError, invalid_value
from lakewright_sandbox.policies.document import MalformedPolicyError, Policy, parse
from lakewright_sandbox.policies.evaluation import ActionRequest, decide
from lakewright_sandbox.policies.patterns import Context

NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"

_SHORTEST = 900
_LONGEST = 43200
_LONGEST_CHAINED = 3600
_POLICY_LIMIT = 2048
_POLICY_CHARACTERS = re.compile(r"[\t\n\r -\u00ff]+")
_SESSION_NAME = re.compile(r"[\w+=,.@-]{2,64}")
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}")


class Sts:
    """Respond to STS calls; sessions are kept in the directory."""

    def __init__(self, directory: Directory) -> None:
        """Keep sessions in a directory."""
        self._directory = directory
        self._calls: dict[str, Callable[[Identity, dict[str, str], Context, datetime], str]] = {
            "AssumeRole": self._assume_role,
            "GetCallerIdentity": self._get_caller_identity,
            "GetSessionToken": self._get_session_token,
        }

    def respond(self, identity: Identity, parameters: dict[str, str], context: Context, now: datetime) -> str:
        """Return the XML body of a call's response. Raises AwsError."""
        action = parameters.get("Action", "")
        call = self._calls.get(action)
        if call is None:
            raise AwsError("InvalidAction", f"The sandbox's STS offers {', '.join(self._calls)}; not {action!r}.")
        result = call(identity, parameters, context, now)
        return (
            f'<{action}Response xmlns="{NAMESPACE}"><{action}Result>{result}</{action}Result>'
            f"<ResponseMetadata><RequestId>00000000-0000-0000-0000-000000000000</RequestId></ResponseMetadata>"
            f"</{action}Response>"
        )

    def _get_caller_identity(
        self, identity: Identity, _parameters: dict[str, str], _context: Context, _now: datetime
    ) -> str:
        # Needs no permission and cannot be denied.
        caller = identity.caller
        user_id = caller.context["aws:userid"][0]
        return f"<Arn>{escape(caller.arn)}</Arn><UserId>{escape(user_id)}</UserId><Account>{caller.account}</Account>"

    def _get_session_token(
        self, identity: Identity, parameters: dict[str, str], _context: Context, now: datetime
    ) -> str:
        if identity.temporary:
            raise AwsAccessDeniedError("Cannot call GetSessionToken with session credentials")
        seconds = _duration(parameters, 129600, 43200)
        return _credentials(self._own_session(identity, "session-token", None, seconds, now))

    def _assume_role(self, identity: Identity, parameters: dict[str, str], context: Context, now: datetime) -> str:
        policies = _session_policies(parameters)
        if not parameters.get("RoleArn"):
            return self._assume_own_role(identity, parameters, policies, now)
        request = _AssumeRole(parameters)
        role = find_role(request.role_arn)
        inherited = self._transitive_tags(identity)
        request.authorize(identity, role, context, inherited)
        assert role is not None  # authorize refuses a missing role
        seconds = _duration(parameters, int(role.max_session_duration or 3600), 3600, chained=identity.temporary)
        session = self._directory.sessions.open(
            expires_at=now + timedelta(seconds=seconds),
            issued_at=now,
            name=request.session_name,
            role_arn=role.arn,
            user_name=None,
            policies=policies,
            tags=inherited | request.tags,
            transitive_tags=frozenset(inherited) | request.transitive_tags,
            source_identity=request.source_identity,
        )
        arn = f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{role.name}/{session.name}"
        return (
            _credentials(session)
            + f"<AssumedRoleUser><AssumedRoleId>{role.id}:{escape(session.name)}</AssumedRoleId>"
            + f"<Arn>{escape(arn)}</Arn></AssumedRoleUser>"
            + f"<PackedPolicySize>{len(parameters.get('Policy', '')) * 100 // _POLICY_LIMIT}</PackedPolicySize>"
        )

    def _assume_own_role(
        self, identity: Identity, parameters: dict[str, str], policies: tuple[Policy, ...] | None, now: datetime
    ) -> str:
        if identity.temporary:
            raise AwsAccessDeniedError("AssumeRole without a RoleArn needs a user's own access key, not a session's.")
        seconds = _duration(parameters, _LONGEST, 3600)
        name = parameters.get("RoleSessionName") or "session"
        return _credentials(self._own_session(identity, name, policies, seconds, now))

    def _own_session(
        self, identity: Identity, name: str, policies: tuple[Policy, ...] | None, seconds: int, now: datetime
    ) -> Session:
        return self._directory.sessions.open(
            expires_at=now + timedelta(seconds=seconds),
            issued_at=now,
            name=name,
            role_arn=None,
            user_name=identity.caller.context["aws:username"][0],
            policies=policies,
            tags={},
            transitive_tags=frozenset(),
            source_identity=None,
        )

    def _transitive_tags(self, identity: Identity) -> dict[str, str]:
        session = self._directory.sessions.get(identity.access_key_id) if identity.temporary else None
        if session is None:
            return {}
        return {name: value for name, value in session.tags.items() if name in session.transitive_tags}


class _AssumeRole:
    """The validated parameters of an AssumeRole call for a role."""

    def __init__(self, parameters: dict[str, str]) -> None:
        self.role_arn = parameters["RoleArn"]
        self.session_name = parameters.get("RoleSessionName", "")
        if not _SESSION_NAME.fullmatch(self.session_name):
            raise invalid_value("roleSessionName", self.session_name, _SESSION_NAME.pattern)
        self.external_id = parameters.get("ExternalId")
        if self.external_id is not None and not _EXTERNAL_ID.fullmatch(self.external_id):
            # Leave out the value: its owner may treat it as a secret.
            raise invalid_value("externalId", "...", _EXTERNAL_ID.pattern)
        names = _members(parameters, "Tags", "Key")
        self.tags = dict(zip(names, _members(parameters, "Tags", "Value"), strict=True))
        self.transitive_tags = frozenset(_members(parameters, "TransitiveTagKeys"))
        self.source_identity = parameters.get("SourceIdentity")

    def authorize(
        self, identity: Identity, role: Role | None, context: Context, inherited_tags: dict[str, str]
    ) -> None:
        """Raise AwsAccessDeniedError unless the trust policy and the caller's policies allow everything requested.

        Transitive tags of the caller's session are tags of the request, too: they need `sts:TagSession`.
        """
        tags = inherited_tags | self.tags
        session_keys: dict[str, list[str]] = {"sts:rolesessionname": [self.session_name]}
        if self.external_id is not None:
            session_keys["sts:externalid"] = [self.external_id]
        if self.source_identity is not None:
            session_keys["sts:sourceidentity"] = [self.source_identity]
        if tags:
            session_keys["aws:tagkeys"] = list(tags)
            session_keys |= {f"aws:requesttag/{name.lower()}": [value] for name, value in tags.items()}
        if self.transitive_tags:
            session_keys["sts:transitivetagkeys"] = sorted(self.transitive_tags)
        actions = ["sts:AssumeRole"]
        actions += ["sts:TagSession"] if tags else []
        actions += ["sts:SetSourceIdentity"] if self.source_identity is not None else []
        for action in actions:
            trust = parse(role.assume_role_policy_document, "trust") if role else None
            request = ActionRequest(action, self.role_arn, {**context, **session_keys})
            decision = decide(identity.caller, identity.rights, request, trust, trust_needed=True)
            if not decision.allowed:
                # STS gives no reason: neither whether the role exists nor what its trust policy requires.
                raise AwsAccessDeniedError(
                    f"User: {identity.caller.arn} is not authorized to perform: {action} on resource: {self.role_arn}"
                )


def _session_policies(parameters: dict[str, str]) -> tuple[Policy, ...] | None:
    documents = _members(parameters, "PolicyArns", "arn")
    policies: list[Policy] = []
    if parameters.get("Policy"):
        if len(parameters["Policy"]) > _POLICY_LIMIT:
            raise invalid_value("policy", "...", f"length of at most {_POLICY_LIMIT}")
        if parameters.get("RoleArn") and not _POLICY_CHARACTERS.fullmatch(parameters["Policy"]):
            raise invalid_value("policy", "...", "regular expression pattern: [\\u0009\\u000A\\u000D\\u0020-\\u00FF]+")
        try:
            policies.append(parse(parameters["Policy"], "identity"))
        except MalformedPolicyError as error:
            raise AwsError("MalformedPolicyDocument", str(error)) from None
    for arn in documents:
        policy = find_managed_policy(arn)
        if policy is None:
            raise AwsError("ValidationError", f"The policy {arn} does not exist.")
        policies.append(policy)
    return tuple(policies) if policies else None


def _duration(parameters: dict[str, str], longest: int, default: int, *, chained: bool = False) -> int:
    text = parameters.get("DurationSeconds", str(default))
    seconds = int(text) if text.isdecimal() else 0
    if seconds < _SHORTEST:
        raise invalid_value("durationSeconds", text, f"value of at least {_SHORTEST}")
    if chained and seconds > _LONGEST_CHAINED:
        raise AwsError(
            "ValidationError",
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining",
        )
    if seconds > longest:
        raise AwsError(
            "ValidationError", "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
        )
    return seconds


def _members(parameters: dict[str, str], name: str, part: str | None = None) -> list[str]:
    suffix = f".{part}" if part else ""
    values: list[str] = []
    while (value := parameters.get(f"{name}.member.{len(values) + 1}{suffix}")) is not None:
        values.append(value)
    return values


def _credentials(session: Session) -> str:
    return (
        f"<Credentials><AccessKeyId>{session.key.access_key_id}</AccessKeyId>"
        f"<SecretAccessKey>{session.key.secret_access_key.get_secret_value()}</SecretAccessKey>"
        f"<SessionToken>{session.token}</SessionToken>"
        f"<Expiration>{session.expires_at:%Y-%m-%dT%H:%M:%SZ}</Expiration></Credentials>"
    )
