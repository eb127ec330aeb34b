"""The initial identities: `admin`, who may do everything, and `lakekeeper`, who may only assume roles of tenants."""

import json

from lakewright_sandbox.aws.moto_app import iam
from lakewright_sandbox.runtime.credentials import ADMIN, LAKEKEEPER, IamAccessKey

# Roles that earlier versions made have no path.
_TENANT_ROLES = ["arn:aws:iam::*:role/lakewright/*", "arn:aws:iam::*:role/lakewright.*"]
_ASSUMING = ["sts:AssumeRole", "sts:TagSession"]
_POLICIES = {
    ADMIN: {
        "Version": "2012-10-17",
        "Statement": [{"Sid": "Everything", "Effect": "Allow", "Action": "*", "Resource": "*"}],
    },
    LAKEKEEPER: {
        "Version": "2012-10-17",
        "Statement": [
            # The policy that platforms give their catalog.
            {"Sid": "AssumeTenantRoles", "Effect": "Allow", "Action": _ASSUMING, "Resource": _TENANT_ROLES},
            {"Sid": "NoOtherRoles", "Effect": "Deny", "Action": _ASSUMING, "NotResource": _TENANT_ROLES},
        ],
    },
}


def create_initial_identities(keys: dict[str, IamAccessKey]) -> None:
    """Create both users with the keys of the credentials file, since moto's data end with its process."""
    backend = iam()
    for name, policy in _POLICIES.items():
        backend.create_user(region_name="us-east-1", user_name=name)
        backend.put_user_policy(name, f"{name}-policy", json.dumps(policy))
        key = backend.create_access_key(name)
        key.access_key_id = keys[name].access_key_id
        key.secret_access_key = keys[name].secret_access_key.get_secret_value()
