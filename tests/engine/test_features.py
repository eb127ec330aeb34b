"""Features of programs beyond plain resources, and refused features."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_programs import stack_program
from lakewright_engine.model.errors import StateError
from lakewright_engine.model.resources import SecretValue
from stackrunner import Stack


def test_stack_reference_keeps_secret_outputs(tmp_path: Path) -> None:
    platform = Stack(
        tmp_path,
        """
import pulumi
pulumi.export("url", "http://catalog")
pulumi.export("key", pulumi.Output.secret("s3cr3t"))
""",
        project="platform",
    )
    assert platform.run("up").outputs == {"url": "http://catalog", "key": "[secret]"}
    tenant = Stack(
        tmp_path,
        """
import pulumi
from filestore import File
platform = pulumi.StackReference("organization/platform/dev")
File("a", "a.json", platform.require_output("url"), token=platform.require_output("key"))
""",
        project="tenant",
    )
    outcome = tenant.run("up")
    assert outcome.exit == 0, outcome.messages
    assert outcome.files["a.json"] == {"path": "a.json", "content": "http://catalog", "token": "s3cr3t"}
    assert isinstance(tenant.resource("a").inputs["token"], SecretValue)
    assert "s3cr3t" not in (tmp_path / "state/.pulumi/stacks/tenant/dev.json").read_text()
    assert tenant.run("preview", "--expect-no-changes").exit == 0


def test_reference_to_missing_stack_is_reported(tmp_path: Path) -> None:
    outcome = Stack(tmp_path, "import pulumi\npulumi.StackReference('organization/conf/nowhere')").run("preview")
    assert outcome.exit == 1
    assert any("nowhere" in message for message in outcome.messages)


def test_unknown_stack_is_refused_before_the_program_runs(tmp_path: Path) -> None:
    stack = Stack(tmp_path, "raise AssertionError('the program was run')")
    stack.name = "other"
    with pytest.raises(StateError, match="other"):
        stack.run("preview")


def test_get_resource_by_urn(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        """
import pulumi
from filestore import File
a = File("a", "a.json", "one")
found = pulumi.runtime.invoke_output("pulumi:pulumi:getResource", {"urn": a.urn})
b = File("b", "b.json", found["state"]["etag"])
""",
    )
    outcome = stack.run("up")
    assert outcome.exit == 0, outcome.messages
    assert outcome.files["b.json"]["content"] == "etag-one"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "import pulumi\npulumi.ComponentResource('remote:index:Thing', 'thing', {}, remote=True)",
            "remote:index:Thing 'thing' is a remote component",
        ),
        (
            "import pulumi\npulumi.CustomResource('random:index/randomId:RandomId', 'r', {})",
            "no provider for the package 'random'",
        ),
        (
            "import pulumi_aws as aws\naws.s3.Bucket('b', bucket='b')",
            "only talks to a running sandbox",
        ),
        (
            "import pulumi_aws as aws\n"
            "aws.Provider('real', region='eu-central-1', endpoints=[{'s3': 'https://s3.example.com'}])",
            "https://s3.example.com",
        ),
        (
            "import pulumi_kubernetes as k8s\nk8s.core.v1.Namespace('n', metadata={'name': 'n'})",
            "renderYamlToDirectory",
        ),
        ("import pulumi\npulumi.Stash('s', input='x')", "Stash"),
    ],
)
def test_unsupported_features_are_refused(tmp_path: Path, program: str, message: str) -> None:
    outcome = Stack(tmp_path, program).run("preview")
    assert outcome.exit == 1
    assert any(message in error for error in outcome.messages), outcome.messages


def test_disabled_default_provider_is_refused(tmp_path: Path) -> None:
    stack = Stack(tmp_path, "from filestore import File\nFile('a', 'a.json', 'x')")
    stack.set_config("pulumi:disable-default-providers", '["*"]')
    outcome = stack.run("up")
    assert outcome.exit == 1
    assert any("explicit provider" in message for message in outcome.messages)


def test_independent_steps_run_in_parallel(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        "from barrierstore import File\nfor name in 'abcd':\n    File(name, f'{name}.json', 'x')",
    )
    outcome = stack.run("up", env={"TOGETHER": "4"})
    assert outcome.exit == 0, outcome.messages


def test_state_has_source_positions(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        """
import pulumi
class Box(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("test:index:Box", name)
Box("mine")
""",
    )
    assert stack.run("up").exit == 0
    assert stack.resource("mine").source_position == "project:///__main__.py#6"


def test_program_output_and_logs_become_events(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path, "import pulumi, sys\nprint('to out')\nprint('to err', file=sys.stderr)\npulumi.warn('careful')\n"
    )
    outcome = stack.run("preview")
    messages = {
        event.diagnostic_event.message.strip() for event in outcome.events if event.diagnostic_event is not None
    }
    assert {"to out", "to err", "careful"} <= messages
    assert outcome.messages == ["warning: careful"]


def test_events_have_changes_and_no_secrets(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        """
import os, pulumi
from filestore import File
File("a", "a.json", os.environ["CONTENT"], token=pulumi.Output.secret("s3cr3t"))
""",
    )
    stack.run("up", env={"CONTENT": "one"})
    outcome = stack.run("up", env={"CONTENT": "two"})
    update = next(
        event.resource_pre_event.metadata
        for event in outcome.events
        if event.resource_pre_event is not None and event.resource_pre_event.metadata.op == "update"
    )
    assert (update.old.inputs["content"], update.new.inputs["content"]) == ("one", "two")
    assert update.new.inputs["token"]["ciphertext"] == "[secret]"
    numbers = [event.sequence for event in outcome.events]
    assert numbers == sorted(numbers)
    assert outcome.events[0].prelude_event is not None
    assert outcome.events[-2].summary_event.resource_changes == {"same": 1, "update": 1}


def test_aws_import_get_and_functions(tmp_path: Path, sandbox: object) -> None:
    stack = aws_stack(tmp_path, sandbox)
    stack.write_program(stack_program(sandbox) + "aws.s3.Bucket('made', bucket='got-bucket', opts=opts)\n")
    assert stack.run("up").exit == 0
    other = Stack(tmp_path / "other", stack_program(sandbox))
    other.write_program(
        stack_program(sandbox)
        + """
got = aws.s3.Bucket.get("got", "got-bucket", opts=opts)
who = aws.get_caller_identity_output(opts=pulumi.InvokeOptions(provider=provider))
pulumi.export("arn", got.arn)
pulumi.export("account", who.account_id)
"""
    )
    outcome = other.run("up")
    assert outcome.exit == 0, outcome.messages
    assert outcome.outputs["arn"] == "arn:aws:s3:::got-bucket"
    assert outcome.outputs["account"] == "123456789012"
    assert other.resource("got").external
    assert [step["op"] for step in other.run("destroy").steps] == ["discard"]

    other.write_program(
        stack_program(sandbox) + "opts = pulumi.ResourceOptions(provider=provider, import_='got-bucket')\n"
        "aws.s3.Bucket('own', bucket='got-bucket', opts=opts)"
    )
    outcome = other.run("up")
    assert outcome.exit == 0, outcome.messages
    assert [step["op"] for step in outcome.steps][:1] == ["import"]
    assert other.run("preview", "--expect-no-changes").exit == 0
    assert other.resource("own").id == "got-bucket"


def aws_stack(tmp_path: Path, sandbox: object) -> Stack:
    return Stack(tmp_path, stack_program(sandbox))


def test_archives_keep_their_parts(tmp_path: Path) -> None:
    stack = Stack(
        tmp_path,
        """
import os
import pulumi
from filestore import FileProvider
from pulumi.dynamic import DiffResult
class Keeper(FileProvider):
    def diff(self, _id, olds, news):
        return DiffResult(changes=None)
class Thing(pulumi.dynamic.Resource):
    pass
parts = {"x.txt": pulumi.StringAsset("x"), "y": pulumi.AssetArchive({"z": pulumi.StringAsset(os.environ["TEXT"])})}
Thing(Keeper(), "a", {"path": "a.json", "archive": pulumi.AssetArchive(parts)})
""",
    )
    outcome = stack.run("up", env={"TEXT": "one"})
    assert outcome.exit == 0, outcome.messages
    (state,) = [resource for resource in stack.deployment()["resources"] if resource["urn"].endswith("::a")]
    parts = state["inputs"]["archive"]["assets"]
    assert parts["x.txt"]["text"] == "x"
    assert parts["y"]["assets"]["z"]["text"] == "one"
    assert stack.run("preview", env={"TEXT": "one"}).changes == {"same": 2}
    assert stack.run("preview", env={"TEXT": "two"}).changes == {"same": 1, "update": 1}
