"""100 projects with 2 roles each, by a naive provider."""

import pulumi
from pulumi.dynamic import Resource

from benchmarks.providers import NaiveProject, NaiveRole


class Project(Resource):
    """A project."""


class Role(Resource):
    """A role."""


endpoint = pulumi.Config().require("endpoint")

for number in range(100):
    props = {"endpoint": endpoint, "project_id": f"naive-{number}"}
    project = Project(NaiveProject(), f"project-{number}", {**props, "name": f"naive {number}"})
    for name in ("readers", "writers"):
        made_in = pulumi.ResourceOptions(depends_on=[project])
        Role(NaiveRole(), f"role-{number}-{name}", {**props, "name": name}, made_in)
