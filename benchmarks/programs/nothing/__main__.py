"""`count` resources whose provider calls nobody."""

import pulumi
from pulumi.dynamic import Resource

from benchmarks.providers import Nothing


class Thing(Resource):
    """Of no kind."""


for number in range(pulumi.Config().require_int("count")):
    Thing(Nothing(), f"nothing-{number}", {"name": f"nothing-{number}", "server": {"endpoint": "nowhere"}})
