"""A proxy in front of moto that authenticates and authorizes every request.

It decides by the policies as AWS documents them. Moto, whose own access control supports neither session policies nor
most conditions, then executes what was allowed. POSTing `0` to `/moto-api/reset-auth`, which enables enforcement in
plain moto, changes nothing: here it is always enabled.
"""

import contextlib
import io
import json
import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lakewright_sandbox.aws import (
    ACCOUNT_ID,
    blocked_encryption,
    iam_actions,
    kms_actions,
    s3_actions,
    signature,
    sts,
    tag_policies,
)
from lakewright_sandbox.aws.cloudtrail import ManagementCall, Trail, TrailPrincipal, bucket_call, iam_call, kms_call
from lakewright_sandbox.aws.delete_objects import DeleteObjects
from lakewright_sandbox.aws.directory import ANONYMOUS, Directory, Identity
from lakewright_sandbox.aws.errors import AwsAccessDeniedError, AwsError, json_error, query_error, s3_error
from lakewright_sandbox.aws.http import HttpRequest, from_environ
from lakewright_sandbox.aws.moto_app import s3
from lakewright_sandbox.aws.request_context import request_context, s3_context
from lakewright_sandbox.aws.server import WsgiApp
from lakewright_sandbox.aws.signature import Signature
from lakewright_sandbox.policies.callers import Caller
from lakewright_sandbox.policies.document import MalformedPolicyError, Policy, parse
from lakewright_sandbox.policies.evaluation import ActionRequest, IdentityPolicies, decide
from lakewright_sandbox.policies.patterns import Context

StartResponse = Callable[..., Any]
WsgiResponse = tuple[int, list[tuple[str, str]], bytes]

_XML = ("Content-Type", "application/xml")
_JSON = ("Content-Type", "application/x-amz-json-1.1")
_NAMESPACES = {"iam": iam_actions.NAMESPACE, "sts": sts.NAMESPACE}


class AuthorizingProxy:
    """A WSGI application around moto's."""

    def __init__(
        self,
        moto: WsgiApp,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        trail: Trail | None = None,
    ) -> None:
        """Wrap moto's application; `clock` returns the current time, `trail` gets records of changes."""
        self._moto = moto
        self._trail = trail or Trail()
        self._clock = clock
        self._directory = Directory()
        self._sts = sts.Sts(self._directory)
        # Moto's stores are plain dictionaries that must not change while another request iterates over them.
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Respond to one WSGI request."""
        request = from_environ(environ)
        environ.pop("HTTP_X_MOTO_ACCOUNT_ID", None)  # requests must not choose another account
        with self._lock:
            status, headers, body = self._respond(request, environ)
        if request.method == "HEAD":
            body = b""
        elif not any(name.lower() == "content-length" for name, _ in headers):
            headers.append(("Content-Length", str(len(body))))
        start_response(f"{status} -", headers)
        return [body]

    def _respond(self, request: HttpRequest, environ: dict[str, Any]) -> WsgiResponse:
        if request.raw_path.startswith("/moto-api"):
            return self._moto_api(request, environ)
        service = "s3"
        try:
            signed = signature.read(request)
            service = signed.service if signed else "s3"
            return self._decide(request, environ, signed)
        except AwsError as error:
            if service in ("kms", "cloudtrail", "organizations", "monitoring"):
                status, text = json_error(error)
                return status, [_JSON], text.encode()
            if service == "s3":
                status, text = s3_error(error, request.raw_path)
            else:
                status, text = query_error(error, _NAMESPACES.get(service, sts.NAMESPACE))
            return status, [_XML], text.encode()

    def _decide(self, request: HttpRequest, environ: dict[str, Any], signed: Signature | None) -> WsgiResponse:
        identity = self._authenticate(request, signed)
        if signed is None or identity is None or signed.service == "s3":
            return self._s3(request, environ, signed, identity)
        context = request_context(request, signed, self._clock())
        if signed.service == "sts":
            return self._respond_to_sts(request, identity, context)
        if signed.service == "iam":
            with self._record_call(iam_call(request.parameters), request, identity) as done:
                self._authorize_iam(request, identity, context)
                return done(self._forward(environ))
        if signed.service == "kms":
            operation = request.headers.get("x-amz-target", "").rpartition(".")[2]
            with self._record_call(kms_call(operation, request.body, signed.region), request, identity) as done:
                access_request = ActionRequest(*kms_actions.parse_call(request, signed.region), context)
                self._allow(identity.caller, identity.rights, access_request)
                tag_policies.check_key_tags(operation, request)
                return done(self._forward(environ))
        if signed.service == "organizations":
            return self._respond_to_organizations(request, environ, identity, context)
        if signed.service in ("cloudtrail", "monitoring"):
            return self._respond_to_observer(request, environ, signed, identity, context)
        raise AwsError(
            "UnknownOperationException",
            "The sandbox has S3, IAM, STS, KMS, Organizations, CloudTrail's event history and CloudWatch's metrics; not"
            f" {signed.service!r}.",
            404,
        )

    def _respond_to_organizations(
        self, request: HttpRequest, environ: dict[str, Any], identity: Identity, context: Context
    ) -> WsgiResponse:
        operation = request.headers.get("x-amz-target", "").rpartition(".")[2]
        self._allow(identity.caller, identity.rights, ActionRequest(f"organizations:{operation}", "*", context))
        if operation == "DescribeEffectivePolicy":
            return 200, [_JSON], json.dumps(tag_policies.describe_effective_policy(request)).encode()
        tag_policies.check_policy(operation, request)
        return self._forward(environ)

    def _respond_to_observer(
        self, request: HttpRequest, environ: dict[str, Any], signed: Signature, identity: Identity, context: Context
    ) -> WsgiResponse:
        """Respond to a reading of events or metrics, for which AWS has no resources. Clients write no metrics."""
        if signed.service == "cloudtrail":
            self._allow(identity.caller, identity.rights, ActionRequest("cloudtrail:LookupEvents", "*", context))
            return self._look_up_events(request, signed.region)
        operation = request.headers.get("x-amz-target", "").rpartition(".")[2]
        if operation not in ("GetMetricData", "ListMetrics"):
            raise AwsError("UnknownOperationException", "Of CloudWatch, the sandbox has GetMetricData and ListMetrics.")
        self._allow(identity.caller, identity.rights, ActionRequest(f"cloudwatch:{operation}", "*", context))
        return self._forward(environ)

    def _look_up_events(self, request: HttpRequest, region: str) -> WsgiResponse:
        if not request.headers.get("x-amz-target", "").endswith(".LookupEvents"):
            raise AwsError("UnknownOperationException", "Of CloudTrail, the sandbox has LookupEvents.")
        response = self._trail.lookup(json.loads(request.body or b"{}"), region)
        return 200, [_JSON], json.dumps(response).encode()

    @contextlib.contextmanager
    def _record_call(
        self, call: ManagementCall | None, request: HttpRequest, identity: Identity | None
    ) -> Generator[Callable[[WsgiResponse], WsgiResponse]]:
        """Record a call with its result. The result is passed through the yielded function."""
        error = ""

        def done(response: WsgiResponse) -> WsgiResponse:
            nonlocal error
            error = "" if response[0] < 400 else str(response[0])
            return response

        try:
            yield done
        except AwsError as refused:
            error = refused.code
            raise
        finally:
            if call is not None:
                caller = identity.caller if identity else ANONYMOUS
                kind = {"user": "IAMUser", "role": "AssumedRole"}.get(caller.kind, "Anonymous")
                principal = TrailPrincipal(kind, caller.arn, caller.account or ACCOUNT_ID)
                self._trail.record(replace(call, error=error), principal, self._clock(), request.remote_address)

    def _authenticate(self, request: HttpRequest, signed: Signature | None) -> Identity | None:
        if signed is None:
            return None
        now = self._clock()
        identity = self._directory.identify(signed.access_key_id, signed.token, now)
        signature.check(request, signed, identity.secret_access_key, now)
        return identity

    def _s3(
        self, request: HttpRequest, environ: dict[str, Any], signed: Signature | None, identity: Identity | None
    ) -> WsgiResponse:
        caller = identity.caller if identity else ANONYMOUS
        rights = identity.rights if identity else IdentityPolicies()
        context = s3_context(request, signed, self._clock())
        if request.method == "OPTIONS":
            return self._forward(environ)  # a browser's preflight: unsigned by design, returns the CORS rules alone
        if s3_actions.is_delete_objects(request):
            return self._delete_objects(request, environ, caller, rights, context)
        actions = s3_actions.list_actions(request)
        if actions[0].bucket not in (None, *s3().buckets) and actions[0].action != "s3:CreateBucket":
            return self._forward(environ)  # S3 reports a missing bucket to every caller
        region = signed.region if signed else "us-east-1"
        about_bucket = actions[0].bucket is not None and actions[0].key is None
        call = bucket_call(request.method, str(actions[0].bucket), request.query, region)
        with self._record_call(call if about_bucket else None, request, identity) as done:
            for step in actions:
                self._require(caller, rights, step, context)
                blocked_encryption.check_upload(step, request)
                for used in kms_actions.list_key_uses(step, request, region):
                    self._allow(caller, rights, ActionRequest(used.action, used.key, {**context, **used.context}))
            if actions[0].action == "s3:PutBucketPolicy" and request.method == "PUT":
                _check_bucket_policy(request.body, str(actions[0].bucket))
            if actions[0].action in ("s3:PutBucketTagging", "s3:CreateBucket"):
                tag_policies.check_bucket_tags(request)
            response = done(self._forward(environ))
        if actions[0].action == "s3:GetEncryptionConfiguration" and response[0] == 200:
            kept_headers = [(name, value) for name, value in response[1] if name.lower() != "content-length"]
            return 200, kept_headers, blocked_encryption.add_blocked_type(str(actions[0].bucket), response[2])
        if response[0] == 404 and actions[0].key is not None and actions[0].action.startswith("s3:GetObject"):
            self._check_may_see_missing(caller, rights, actions[0], context)
        return response

    def _check_may_see_missing(
        self, caller: Caller, rights: IdentityPolicies, step: s3_actions.S3Action, context: Context
    ) -> None:
        """Raise AccessDenied for a missing object unless the caller may list it, as S3 does.

        AWS does not document the value of `s3:prefix` in that check. Here it is the key: a caller who may list what
        begins with it sees the 404, as vended credentials do within their table.
        """
        if step.bucket in s3().buckets:
            listing = s3_actions.S3Action("s3:ListBucket", step.bucket)
            self._require(caller, rights, listing, {**context, "s3:prefix": [str(step.key)]})

    def _delete_objects(
        self, request: HttpRequest, environ: dict[str, Any], caller: Caller, rights: IdentityPolicies, context: Context
    ) -> WsgiResponse:
        bucket, _ = s3_actions.parse_target(request)

        def refusal(action: str, key: str) -> str | None:
            try:
                self._require(caller, rights, s3_actions.S3Action(action, bucket, key), context)
            except AwsAccessDeniedError as error:
                return error.message
            return None

        delete_request = DeleteObjects(request.body, refusal)
        if delete_request.nothing_left:
            return 200, [_XML], delete_request.merge_response()
        body = delete_request.build_allowed_body()
        status, headers, response = self._forward(
            environ | {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        )
        if status != 200:
            return status, headers, response
        kept_headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
        return status, kept_headers, delete_request.merge_response(response)

    def _require(self, caller: Caller, rights: IdentityPolicies, step: s3_actions.S3Action, context: Context) -> None:
        self._allow(caller, rights, ActionRequest(step.action, step.resource, context), _bucket_policy(step.bucket))

    @staticmethod
    def _allow(
        caller: Caller, rights: IdentityPolicies, access_request: ActionRequest, policy: Policy | None = None
    ) -> None:
        decision = decide(caller, rights, access_request, policy)
        if not decision.allowed:
            raise AwsAccessDeniedError(decision.message)

    def _respond_to_sts(self, request: HttpRequest, identity: Identity, context: Context) -> WsgiResponse:
        text = self._sts.respond(identity, request.parameters, context, self._clock())
        return 200, [("Content-Type", "text/xml")], text.encode()

    def _authorize_iam(self, request: HttpRequest, identity: Identity, context: Context) -> None:
        parameters = request.parameters
        access_request = ActionRequest(f"iam:{parameters.get('Action', '')}", iam_actions.resource(parameters), context)
        self._allow(identity.caller, identity.rights, access_request)
        iam_actions.check_documents(parameters)

    def _moto_api(self, request: HttpRequest, environ: dict[str, Any]) -> WsgiResponse:
        # The page identifies a sandbox. The rest of moto's own API exposes or deletes everything without any check.
        if request.method == "GET" and request.raw_path.rstrip("/") == "/moto-api":
            return self._forward(environ)
        if request.raw_path == "/moto-api/reset-auth" and request.method == "POST" and request.body.strip() == b"0":
            response = b'{"status": "ok", "PREVIOUS_INITIAL_NO_AUTH_ACTION_COUNT": "0"}'
            return 200, [("Content-Type", "application/json")], response
        return 403, [("Content-Type", "text/plain")], b"The sandbox always enforces policies.\n"

    def _forward(self, environ: dict[str, Any]) -> WsgiResponse:
        response: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> None:
            response[:] = [int(status.split(" ", 1)[0]), list(headers)]

        content = self._moto(environ, start_response)
        body = b"".join(content)
        return response[0], response[1], body


def _bucket_policy(name: str | None) -> Policy | None:
    bucket = s3().buckets.get(name) if name else None
    if bucket is None or bucket.policy is None:
        return None
    return parse(bucket.policy.decode(), "resource")


def _check_bucket_policy(body: bytes, bucket: str) -> None:
    try:
        policy = parse(body.decode("utf-8", "replace"), "resource")
    except MalformedPolicyError as error:
        raise AwsError("MalformedPolicy", str(error)) from None
    for statement in policy.statements:
        for resource in statement.resources:
            if resource.partition("/")[0] != f"arn:aws:s3:::{bucket}":
                raise AwsError("MalformedPolicy", "Policy has invalid resource")
    principals = {entry for s in policy.statements if s.principals for entry in s.principals.aws}
    try:
        iam_actions.require_known_principals(principals)
    except AwsError:
        raise AwsError("MalformedPolicy", "Invalid principal in policy") from None
