"""S3 clients of Iceberg engines, each with session credentials for one table."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyiceberg.io.pyarrow import PyArrowFileIO

from tests.integration.sandbox.conftest import CATALOG_ARN, Aws, allow, policy, trusts


@pytest.fixture
def table(aws: Aws) -> tuple[str, dict[str, Any]]:
    """A table's location and credentials for it, as a catalog gives them out."""
    bucket = aws.bucket()
    role = aws.role(trusts(CATALOG_ARN), allow("s3:*", [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]))
    objects = ["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject"]
    objects += ["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
    session = policy(
        allow(objects, f"arn:aws:s3:::{bucket}/w/t1/*"),
        allow("s3:ListBucket", f"arn:aws:s3:::{bucket}", Condition={"StringLike": {"s3:prefix": "w/t1/*"}}),
        allow("s3:GetBucketLocation", f"arn:aws:s3:::{bucket}"),
    )
    return f"{bucket}/w/t1", aws.assume(role, Policy=session)


def test_pyarrow(aws: Aws, table: tuple[str, dict[str, Any]]) -> None:
    location, credentials = table
    s3 = fs.S3FileSystem(
        access_key=credentials["AccessKeyId"],
        secret_key=credentials["SecretAccessKey"],
        session_token=credentials["SessionToken"],
        endpoint_override=aws.endpoint,
        region="us-east-1",
    )
    rows = pa.table({"number": list(range(1_000_000)), "text": [f"row {n}" for n in range(1_000_000)]})
    pq.write_table(rows, f"{location}/data/1.parquet", filesystem=s3, compression="none")
    assert pq.read_table(f"{location}/data/1.parquet", filesystem=s3).num_rows == 1_000_000
    assert s3.get_file_info(f"{location}/data/1.parquet").size > 10_000_000  # uploaded in several parts
    with pytest.raises(OSError, match="no session policy allows the s3:PutObject action"):
        pq.write_table(rows.slice(0, 1), f"{location}2/data/1.parquet", filesystem=s3)


def test_pyicebergs_file_io(aws: Aws, table: tuple[str, dict[str, Any]]) -> None:
    location, credentials = table
    io = PyArrowFileIO(
        {
            "s3.endpoint": aws.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": credentials["AccessKeyId"],
            "s3.secret-access-key": credentials["SecretAccessKey"],
            "s3.session-token": credentials["SessionToken"],
        }
    )
    with io.new_output(f"s3://{location}/metadata/a b.json").create() as file:
        file.write(b"{}")
    with io.new_input(f"s3://{location}/metadata/a b.json").open() as file:
        assert file.read() == b"{}"
    io.delete(f"s3://{location}/metadata/a b.json")
