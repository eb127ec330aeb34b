"""IAM paths of warehouses' roles. A path cannot change, so an existing role keeps the path that it has."""

# boto3 has no types; its results are cast where they are used.
# pyright: reportMissingTypeStubs=false

from collections.abc import Callable, Collection
from typing import cast

from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.lakekeeper.tenant.tenant_history import KeptData, RecordedWarehouse, Warehouses, find_origin
from lakewright.names.object_names import FORMER_ROLE_PATH, ROLE_PATH, role_name

FindPath = Callable[[str], str | None]
"""Returns the path of an existing role by its name; None if there is none."""


def with_role_paths(
    tenant: str,
    identified: Warehouses,
    before: Warehouses,
    kept: list[KeptData],
    *,
    made_now: Collection[str],
    made_before: Collection[str],
    find_path: FindPath,
    unrecorded: Callable[[str], bool],
) -> Warehouses:
    """Return the warehouses, each with the path of its role; without a path, the role has the path of earlier versions.

    Args:
        tenant: Name of the tenant.
        identified: Warehouses of the spec, each with its origin.
        before: Warehouses of the earlier record, by name.
        kept: Remaining data of earlier warehouses, whose roles may remain, too.
        made_now: Names of the buckets that the stack creates. Only their warehouses have roles of the stack.
        made_before: Names of such buckets in the earlier record.
        find_path: Looks up an existing role.
        unrecorded: Whether a warehouse, by name, may have a role that the record does not know.
    """
    earlier = {find_origin(name, warehouse): warehouse for name, warehouse in before.items()}
    retained_origins = {data.origin for data in kept}

    def choose_path(name: str, warehouse: RecordedWarehouse) -> str | None:
        origin = find_origin(name, warehouse)
        if warehouse.bucket not in made_now:
            return None
        if (earlier_warehouse := earlier.get(origin)) and earlier_warehouse.bucket in made_before:
            return earlier_warehouse.role_path
        if (origin in retained_origins or unrecorded(name)) and (live_path := find_path(role_name(tenant, origin))):
            return None if live_path == FORMER_ROLE_PATH else live_path
        return ROLE_PATH

    return {
        name: warehouse.model_copy(update={"role_path": choose_path(name, warehouse)})
        for name, warehouse in identified.items()
    }


def find_role_path(bucket: OwnBucket, role: str) -> str | None:
    """Return the path of a role in the account of a bucket; None if there is no such role.

    Raises:
        CannotCountError: IAM refused the call.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    try:
        return cast(str, own_bucket.open_client(bucket, "iam").get_role(RoleName=role)["Role"]["Path"])
    except ClientError as error:
        code = own_bucket.read_code(error)
        if code == "NoSuchEntity":
            return None
        raise CannotCountError(
            f"could not look up role `{role}`: IAM responded {code}. Let the stack's identity call iam:GetRole."
        ) from None
    except BotoCoreError:
        # Without an identity or a connection, the stack's `aws` provider fails before it replaces a role.
        return None
