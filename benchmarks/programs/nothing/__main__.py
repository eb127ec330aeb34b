"""400 resources whose provider calls nobody."""

from pulumi.dynamic import Resource

from benchmarks.providers import Nothing


class Thing(Resource):
    """Of no kind."""


for number in range(400):
    Thing(Nothing(), f"nothing-{number}", {"name": f"nothing-{number}", "server": {"endpoint": "nowhere"}})
