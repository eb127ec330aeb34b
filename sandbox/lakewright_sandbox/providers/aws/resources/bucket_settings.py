"""Settings of a bucket as separate resources: versioning, encryption, public access, ownership, policy."""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from lakewright_sandbox.providers.aws.resources.bucket import GONE
from lakewright_sandbox.providers.aws.resources.calls import ignore_codes
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.kind import POLICY, REGION, ResourceKind, ResourceProperty
from lakewright_sandbox.providers.protocol.properties import Properties
from lakewright_sandbox.typed.boto import ClientError, error_code
from lakewright_sandbox.typed.json_values import is_object


class BucketSetting(ResourceKind):
    """One setting of a bucket, written as a whole. Its id is the bucket's name.

    `absent` is the error code of a bucket without the setting.
    """

    absent: ClassVar[str]

    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        """Write the setting."""
        raise NotImplementedError

    def get(self, s3: Any, bucket: str) -> Properties:
        """Return the setting as outputs."""
        raise NotImplementedError

    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        """Remove the setting."""
        raise NotImplementedError

    @override
    def find_id(self, inputs: Properties) -> str:
        return inputs["bucket"]

    @override
    def create(self, aws: AwsConnection, inputs: Properties) -> None:
        self.write_setting(aws.client("s3", inputs.get("region")), inputs["bucket"], inputs)

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        try:
            live = self.get(aws.client("s3", olds.get("region")), resource_id)
        except ClientError as error:
            if error_code(error) in (self.absent, *GONE):
                return None
            raise
        return {"bucket": resource_id, "region": olds.get("region") or aws.region} | live

    @override
    def update(self, aws: AwsConnection, resource_id: str, olds: Properties, news: Properties) -> None:
        self.write_setting(aws.client("s3", olds.get("region")), resource_id, news)

    @override
    def delete(self, aws: AwsConnection, resource_id: str, olds: Properties) -> None:
        with ignore_codes(self.absent, *GONE):
            self.unset(aws.client("s3", olds.get("region")), resource_id, olds)


_BUCKET = ResourceProperty(replaces=True, required=True)


class BucketVersioning(BucketSetting):
    """Versioning of a bucket's objects."""

    token = "aws:s3/bucketVersioning:BucketVersioning"  # noqa: S105
    title = "versioning of bucket"
    absent = "NoSuchBucket"
    properties = {"bucket": _BUCKET, "region": REGION, "versioningConfiguration": ResourceProperty(required=True)}
    computed_outputs = ("region",)

    @override
    def problems(self, inputs: Properties) -> dict[str, str]:
        versioning = inputs["versioningConfiguration"]
        if is_object(versioning) and "status" in versioning and not versioning.get("mfaDelete"):
            return {}
        return {"versioningConfiguration": "versioningConfiguration takes `status` alone: Enabled, Suspended, Disabled"}

    @override
    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        status = inputs["versioningConfiguration"]["status"]
        # Only a bucket that was never versioned is Disabled; AWS has no call for it.
        if status != "Disabled":
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})

    @override
    def get(self, s3: Any, bucket: str) -> Properties:
        status = s3.get_bucket_versioning(Bucket=bucket).get("Status") or "Disabled"
        return {"versioningConfiguration": {"mfaDelete": "", "status": status}}

    @override
    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        if olds["versioningConfiguration"]["status"] == "Enabled":
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


class BucketEncryption(BucketSetting):
    """Default encryption of a bucket's objects."""

    token = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"  # noqa: S105
    title = "encryption of bucket"
    absent = "ServerSideEncryptionConfigurationNotFoundError"
    properties = {"bucket": _BUCKET, "region": REGION, "rules": ResourceProperty(required=True)}
    computed_outputs = ("region",)

    @override
    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        rules: list[Properties] = []
        declared_rules: list[Properties] = inputs["rules"]
        for rule in declared_rules:
            default: Properties = rule.get("applyServerSideEncryptionByDefault") or {}
            written: Properties = {"BucketKeyEnabled": bool(rule.get("bucketKeyEnabled"))}
            if default:
                key = {"KMSMasterKeyID": default["kmsMasterKeyId"]} if default.get("kmsMasterKeyId") else {}
                written["ApplyServerSideEncryptionByDefault"] = {"SSEAlgorithm": default["sseAlgorithm"]} | key
            if blocked_types := rule.get("blockedEncryptionTypes"):
                written["BlockedEncryptionTypes"] = {"EncryptionType": blocked_types}
            rules.append(written)
        s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})

    @override
    def get(self, s3: Any, bucket: str) -> Properties:
        rules = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
        return {"rules": [_encryption_rule(rule) for rule in rules]}

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        live = super().read(aws, resource_id, olds)
        old_rules: list[Properties] = olds.get("rules") or []
        if live and not any(rule.get("blockedEncryptionTypes") for rule in old_rules):
            # Programs that do not name blocked types leave them to S3.
            for rule in live["rules"]:
                del rule["blockedEncryptionTypes"]
        return live

    @override
    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        s3.delete_bucket_encryption(Bucket=bucket)


def _encryption_rule(rule: Properties) -> Properties:
    default = rule.get("ApplyServerSideEncryptionByDefault", {})
    return {
        "applyServerSideEncryptionByDefault": {
            "kmsMasterKeyId": default.get("KMSMasterKeyID", ""),
            "sseAlgorithm": default.get("SSEAlgorithm", ""),
        },
        "bucketKeyEnabled": bool(rule.get("BucketKeyEnabled")),
        "blockedEncryptionTypes": rule.get("BlockedEncryptionTypes", {}).get("EncryptionType", []),
    }


class BucketPublicAccessBlock(BucketSetting):
    """Switches that block public access to a bucket."""

    token = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"  # noqa: S105
    title = "public access block of bucket"
    absent = "NoSuchPublicAccessBlockConfiguration"
    switches = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    properties = {"bucket": _BUCKET, "region": REGION} | {
        switch: ResourceProperty(default=False) for switch in switches
    }
    computed_outputs = ("region",)

    @override
    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        configuration = {switch[0].upper() + switch[1:]: bool(inputs.get(switch)) for switch in self.switches}
        s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=configuration)

    @override
    def get(self, s3: Any, bucket: str) -> Properties:
        live = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
        return {switch: bool(live.get(switch[0].upper() + switch[1:])) for switch in self.switches}

    @override
    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        s3.delete_public_access_block(Bucket=bucket)


class BucketOwnershipControls(BucketSetting):
    """Ownership of the objects that are written to a bucket."""

    token = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"  # noqa: S105
    title = "ownership controls of bucket"
    absent = "OwnershipControlsNotFoundError"
    properties = {"bucket": _BUCKET, "region": REGION, "rule": ResourceProperty(required=True)}
    computed_outputs = ("region",)

    @override
    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        rules = [{"ObjectOwnership": inputs["rule"]["objectOwnership"]}]
        s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls={"Rules": rules})

    @override
    def get(self, s3: Any, bucket: str) -> Properties:
        rules = s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]["Rules"]
        return {"rule": {"objectOwnership": rules[0]["ObjectOwnership"]}}

    @override
    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        s3.delete_bucket_ownership_controls(Bucket=bucket)


class BucketPolicy(BucketSetting):
    """The policy of a bucket."""

    token = "aws:s3/bucketPolicy:BucketPolicy"  # noqa: S105
    title = "policy of bucket"
    absent = "NoSuchBucketPolicy"
    properties = {"bucket": _BUCKET, "policy": POLICY, "region": REGION}
    computed_outputs = ("region",)

    @override
    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        s3.put_bucket_policy(Bucket=bucket, Policy=inputs["policy"])

    @override
    def get(self, s3: Any, bucket: str) -> Properties:
        return {"policy": s3.get_bucket_policy(Bucket=bucket)["Policy"]}

    @override
    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        s3.delete_bucket_policy(Bucket=bucket)


class BucketLogging(BucketSetting):
    """Access logs of a bucket."""

    token = "aws:s3/bucketLogging:BucketLogging"  # noqa: S105
    title = "access logs of bucket"
    absent = "NoSuchBucket"
    properties = {
        "bucket": _BUCKET,
        "region": REGION,
        "targetBucket": ResourceProperty(required=True),
        "targetPrefix": ResourceProperty(required=True),
    }
    computed_outputs = ("region",)

    @override
    def write_setting(self, s3: Any, bucket: str, inputs: Properties) -> None:
        target = {"TargetBucket": inputs["targetBucket"], "TargetPrefix": inputs["targetPrefix"]}
        s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={"LoggingEnabled": target})

    @override
    def read(self, aws: AwsConnection, resource_id: str, olds: Properties) -> Properties | None:
        live = super().read(aws, resource_id, olds)
        # A bucket without logs responds with an empty status.
        return live if live and live.get("targetBucket") else None

    @override
    def get(self, s3: Any, bucket: str) -> Properties:
        target = s3.get_bucket_logging(Bucket=bucket).get("LoggingEnabled")
        return {"targetBucket": target["TargetBucket"], "targetPrefix": target["TargetPrefix"]} if target else {}

    @override
    def unset(self, s3: Any, bucket: str, olds: Properties) -> None:
        s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={})
