"""The actions and resources that must be allowed for an S3 request.

Names follow "Actions, resources, and condition keys for Amazon S3" of the Service Authorization Reference.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from lakewright_sandbox.aws.errors import AwsError
from lakewright_sandbox.aws.http import HttpRequest

# Setting by sub-resource, for settings with one get and one put action (delete needs the put action).
_BUCKET_SETTINGS = {
    "accelerate": "AccelerateConfiguration",
    "acl": "BucketAcl",
    "cors": "BucketCORS",
    "encryption": "EncryptionConfiguration",
    "inventory": "InventoryConfiguration",
    "lifecycle": "LifecycleConfiguration",
    "logging": "BucketLogging",
    "notification": "BucketNotification",
    "object-lock": "BucketObjectLockConfiguration",
    "ownershipControls": "BucketOwnershipControls",
    "policy": "BucketPolicy",
    "publicAccessBlock": "BucketPublicAccessBlock",
    "replication": "ReplicationConfiguration",
    "tagging": "BucketTagging",
    "versioning": "BucketVersioning",
    "website": "BucketWebsite",
}
_OWN_DELETE_ACTION = {"policy", "website"}
_BUCKET_READS = {
    "location": "GetBucketLocation",
    "policyStatus": "GetBucketPolicyStatus",
    "uploads": "ListBucketMultipartUploads",
    "versions": "ListBucketVersions",
}
_OBJECT_SETTINGS = {"acl": "Acl", "legal-hold": "LegalHold", "retention": "Retention", "tagging": "Tagging"}
_OBJECT_SUBRESOURCES = {*_OBJECT_SETTINGS, "attributes", "restore", "select", "torrent", "uploads", "uploadId"}
_SUBRESOURCES = {*_BUCKET_SETTINGS, *_BUCKET_READS, *_OBJECT_SUBRESOURCES, "delete"} | {
    *("analytics", "intelligent-tiering", "metadataTable", "metrics", "object-lambda", "requestPayment", "session"),
}
_VERSIONED = {
    "s3:GetObject": "s3:GetObjectVersion",
    "s3:DeleteObject": "s3:DeleteObjectVersion",
    "s3:GetObjectAcl": "s3:GetObjectVersionAcl",
    "s3:PutObjectAcl": "s3:PutObjectVersionAcl",
    "s3:GetObjectTagging": "s3:GetObjectVersionTagging",
    "s3:PutObjectTagging": "s3:PutObjectVersionTagging",
    "s3:DeleteObjectTagging": "s3:DeleteObjectVersionTagging",
    "s3:GetObjectAttributes": "s3:GetObjectVersionAttributes",
}
_BUCKET_NAME = re.compile(r"[A-Za-z0-9._-]{3,255}")


@dataclass(frozen=True)
class S3Action:
    """An action on an object or, without a key, on a bucket."""

    action: str
    bucket: str | None
    key: str | None = None

    @property
    def resource(self) -> str:
        """Return the ARN."""
        if self.bucket is None:
            return "*"
        return f"arn:aws:s3:::{self.bucket}" + (f"/{self.key}" if self.key is not None else "")


def parse_target(request: HttpRequest) -> tuple[str | None, str | None]:
    """Return bucket and key of a path-style request; moto is configured to parse the path alike."""
    bucket, slash, key = unquote(request.raw_path).removeprefix("/").partition("/")
    if not bucket:
        if slash:
            raise AwsError("InvalidURI", "Couldn't parse the specified URI.")
        return None, None
    if not _BUCKET_NAME.fullmatch(bucket) or not request.raw_path.startswith(f"/{bucket}"):
        raise AwsError("InvalidBucketName", "The specified bucket is not valid.")
    return bucket, key or None


def list_actions(request: HttpRequest) -> list[S3Action]:
    """Return all actions that must be allowed for a request (for DeleteObjects see `is_delete_objects`).

    Raises:
        AwsError: No action is known for the request, so that nothing reaches moto unchecked.
    """
    bucket, key = parse_target(request)
    if bucket is None:
        if request.method not in ("GET", "HEAD"):
            raise _not_allowed()
        return [S3Action("s3:ListAllMyBuckets", None)]
    subresource = _subresource(request)
    if key is None:
        return [S3Action(_bucket_action(request.method, subresource), bucket)]
    return _object_steps(request, subresource, bucket, key)


def is_delete_objects(request: HttpRequest) -> bool:
    """Return whether the request deletes many objects, each of which is authorized separately."""
    bucket, key = parse_target(request)
    return bucket is not None and key is None and request.method == "POST" and _subresource(request) == "delete"


def add_version(action: str, request: HttpRequest) -> str:
    """Return the action's form for a request that names a version."""
    return _VERSIONED.get(action, action) if "versionId" in request.query else action


def _subresource(request: HttpRequest) -> str | None:
    present = sorted(_SUBRESOURCES & set(request.query))
    if len(present) > 1:
        # The request is ambiguous, and S3 refuses it too.
        raise AwsError("InvalidArgument", f"Conflicting query string parameters: {', '.join(present)}")
    return present[0] if present else None


def _bucket_action(method: str, subresource: str | None) -> str:
    plain = {"GET": "ListBucket", "HEAD": "ListBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}
    if subresource is None or method == "HEAD":
        action = plain.get(method)
    elif method == "GET":
        setting = _BUCKET_SETTINGS.get(subresource)
        action = f"Get{setting}" if setting else _BUCKET_READS.get(subresource)
    elif method in ("PUT", "DELETE") and subresource in _BUCKET_SETTINGS:
        verb = "Delete" if method == "DELETE" and subresource in _OWN_DELETE_ACTION else "Put"
        action = verb + _BUCKET_SETTINGS[subresource]
    else:
        action = None
    if action is None:
        raise _not_allowed()
    return f"s3:{action}"


def _object_steps(request: HttpRequest, subresource: str | None, bucket: str, key: str) -> list[S3Action]:
    action = _object_action(request.method, subresource)
    if action is None:
        raise _not_allowed()
    steps = [S3Action(add_version(f"s3:{action}", request), bucket, key)]
    if subresource == "attributes":
        steps.append(S3Action(add_version("s3:GetObject", request), bucket, key))
    if action == "PutObject":
        source = request.headers.get("x-amz-copy-source")
        if source is not None:
            steps.append(_copy_source(source))
        for header, extra in (
            ("x-amz-acl", "PutObjectAcl"),
            ("x-amz-tagging", "PutObjectTagging"),
            ("x-amz-object-lock-mode", "PutObjectRetention"),
            ("x-amz-object-lock-legal-hold", "PutObjectLegalHold"),
        ):
            if header in request.headers:
                steps.append(S3Action(f"s3:{extra}", bucket, key))
    if request.headers.get("x-amz-bypass-governance-retention", "").lower() == "true":
        steps.append(S3Action("s3:BypassGovernanceRetention", bucket, key))
    return steps


def _object_action(method: str, subresource: str | None) -> str | None:
    if method == "HEAD":
        return "GetObject"
    verb = {"GET": "Get", "PUT": "Put", "DELETE": "Delete"}.get(method)
    if subresource in _OBJECT_SETTINGS:
        if method == "DELETE" and subresource != "tagging":
            return None
        return f"{verb}Object{_OBJECT_SETTINGS[subresource]}" if verb else None
    actions: dict[tuple[str, str | None], str] = {
        ("GET", None): "GetObject",
        ("GET", "attributes"): "GetObjectAttributes",
        ("GET", "uploadId"): "ListMultipartUploadParts",
        ("PUT", None): "PutObject",
        ("PUT", "uploadId"): "PutObject",
        ("DELETE", None): "DeleteObject",
        ("DELETE", "uploadId"): "AbortMultipartUpload",
        ("POST", "uploads"): "PutObject",
        ("POST", "uploadId"): "PutObject",
        ("POST", "restore"): "RestoreObject",
        ("POST", "select"): "GetObject",
    }
    return actions.get((method, subresource))


def _copy_source(header: str) -> S3Action:
    path, _, query = header.partition("?")
    bucket, _, key = unquote(path).removeprefix("/").partition("/")
    if not bucket or not key:
        raise AwsError("InvalidArgument", "Copy Source must mention the source bucket and key: sourcebucket/sourcekey")
    return S3Action("s3:GetObjectVersion" if query.startswith("versionId=") else "s3:GetObject", bucket, key)


def _not_allowed() -> AwsError:
    return AwsError("MethodNotAllowed", "The specified method is not allowed against this resource.", 405)
