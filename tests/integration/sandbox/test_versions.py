"""Object versions, as far as emptying a bucket needs them."""

from __future__ import annotations

from tests.integration.sandbox.conftest import Aws


def test_a_bucket_whose_versioning_was_suspended_can_be_emptied(aws: Aws) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="suspended")
    s3.put_bucket_versioning(Bucket="suspended", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="suspended", Key="a", Body=b"1")
    s3.delete_object(Bucket="suspended", Key="a")
    s3.put_bucket_versioning(Bucket="suspended", VersioningConfiguration={"Status": "Suspended"})

    versions = s3.list_object_versions(Bucket="suspended")
    object_versions = [
        {"Key": version["Key"], "VersionId": version["VersionId"]}
        for version in [*versions["Versions"], *versions["DeleteMarkers"]]
    ]
    s3.delete_objects(Bucket="suspended", Delete={"Objects": object_versions})

    s3.delete_bucket(Bucket="suspended")
    assert "suspended" not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
