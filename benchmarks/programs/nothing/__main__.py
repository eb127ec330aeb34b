"""`count` resources whose provider makes no calls."""

import pulumi
from pulumi.dynamic import Resource

from benchmarks.providers import Nothing


class Thing(Resource):
    """A resource whose provider makes no calls."""


for number in range(pulumi.Config().require_int("count")):
    Thing(Nothing(), f"nothing-{number}", {"name": f"nothing-{number}", "server": {"endpoint": "nowhere"}})
