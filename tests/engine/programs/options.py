"""Programs with features that the cases do not cover: options, aliases, replacements, failures."""

from __future__ import annotations

from dataclasses import dataclass

HEADER = """
import os
import pulumi
from filestore import File, FileProvider
from pulumi import Alias, ResourceOptions as Options
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult
step = int(os.environ["STEP"])
"""


@dataclass(frozen=True)
class Scenario:
    """A program, and the commands for its steps. The number of a step is `step` in the program."""

    program: str
    commands: tuple[str, ...]
    since_cli: str = ""
    """The oldest version of the Pulumi CLI that behaves as recorded; empty where no version is known to differ."""


PROGRAMS = {
    "aliases of a component are inherited": Scenario(
        """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("test:index:Box" if step == 1 else "test:index:Crate", name, {}, opts)
        File(f"{name}-inner", f"{name[0]}.json", "i", opts=Options(parent=self))
        self.register_outputs({})
if step == 1:
    Box("box")
else:
    Box("bin", Options(aliases=[Alias(name="box", type_="test:index:Box")]))
urn = "urn:pulumi:dev::conf::pulumi-python:dynamic/store:File::plain"
File("plain" if step == 1 else "renamed", "p.json", "p", opts=Options(aliases=[urn]))
""",
        ("up", "preview", "up", "up"),
    ),
    "a component moves to another parent": Scenario(
        """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("test:index:Box", name, {}, opts)
        File("leaf", "leaf.json", "i", opts=Options(parent=self))
outer = Box("outer") if False else pulumi.ComponentResource("test:index:Outer", "outer", {})
Box("inner", Options() if step == 1 else Options(parent=outer, aliases=[Alias(parent=pulumi.ROOT_STACK_RESOURCE)]))
""",
        ("up", "up"),
    ),
    "protect, retain and import": Scenario(
        """
if step < 3:
    File("kept", "kept.json", "k", opts=Options(retain_on_delete=True))
    parent = pulumi.ComponentResource("test:index:Box", "box", {}, Options(protect=step < 2))
    File("guarded", "guarded.json", "g", opts=Options(parent=parent))
""",
        ("up", "destroy", "up", "up", "destroy"),
    ),
    "ignored and replacing properties": Scenario(
        """
File("a", "a.json", f"content {step}", opts=Options(ignore_changes=["content"]))
File("b", "b.json", f"content {step}", opts=Options(replace_on_changes=["content"], delete_before_replace=True))
File("c", f"c{step}.json", "c", opts=Options(delete_before_replace=True))
""",
        ("up", "preview", "up"),
    ),
    "deleted with another": Scenario(
        """
if step < 2:
    a = File("a", "a.json", "a")
    File("b", "b.json", "b", opts=Options(deleted_with=a))
""",
        ("up", "up", "destroy"),
    ),
    "replaced with another": Scenario(
        """
a = File("a", f"a{step}.json", "a")
File("b", f"b{step}.json", "b", opts=Options(replace_with=[a]))
File("c", f"c.json", "c", opts=Options(deleted_with=a, delete_before_replace=True))
""",
        ("up", "up"),
        since_cli="3.260",
    ),
    "a chain deleted before it is replaced": Scenario(
        """
class Chained(File):
    pass
a = File("a", "a.json" if step == 1 else "a2.json", "a", opts=Options(delete_before_replace=True))
b = File("b", a.path, "b", opts=Options(delete_before_replace=True))
c = File("c", "c.json", b.etag, opts=Options())
d = File("d", b.etag, "d", opts=Options())
""",
        ("up", "preview", "up", "destroy"),
    ),
    "a failed step in the middle": Scenario(
        """
a = File("a", "a.json", "a")
content = "fail" if step == 2 else f"b{step}"
b = File("b", "b.json", content, opts=Options(replace_on_changes=["content"], depends_on=[a]))
c = File("c", "c.json", "c", opts=Options(depends_on=[b]))
pulumi.export("c", c.etag)
""",
        ("up", "up", "up", "destroy"),
    ),
    "a program that raises": Scenario(
        """
File("a", "a.json", "a")
pulumi.export("x", 1)
if step == 2:
    raise ValueError("no such thing")
if step == 3:
    raise SystemExit(3)
""",
        ("up", "up", "up", "preview"),
    ),
    "secret outputs and unknowns": Scenario(
        """
token = pulumi.Output.secret({"x": [1, 2.5, True]})
a = File("a", "a.json", f"a{step}", token=token, opts=Options(additional_secret_outputs=["etag"]))
b = File("b", "b.json", a.etag.apply(lambda e: e + "!"), opts=Options(depends_on=[a]))
pulumi.export("etag", a.etag)
pulumi.export("nested", {"b": b.content, "list": [1, 2.0, None, "x"]})
""",
        ("up", "preview", "up", "up --refresh", "refresh"),
    ),
    "an object that the stack does not own": Scenario(
        """
class Got(pulumi.CustomResource):
    def __init__(self, name, props, opts=None):
        super().__init__("pulumi-python:dynamic/store:File", name, props, opts)
if step < 3:
    owned = File("owned", "owned.json", "o")
from filestore import FileProvider
from pulumi.dynamic.dynamic import serialize_provider
if step > 1:
    props = {"__provider": serialize_provider(FileProvider()), "path": "owned.json", "content": None, "etag": None}
    Got("got", props, Options(id="owned.json", depends_on=[owned] if step < 3 else []))
""",
        ("up", "up", "up", "destroy"),
    ),
    "a replacement that fails half-way": Scenario(
        """
content = "fail" if step == 2 else "ok"
a = File("a", f"a{step}.json", content, opts=Options(delete_before_replace=True))
b = File("b", f"b{step}.json", content, opts=Options(depends_on=[a] if step == 3 else []))
""",
        ("up", "up", "preview", "up", "destroy"),
    ),
    "a replacement trigger": Scenario(
        """
File("a", "a.json", "a", opts=Options(replacement_trigger="one" if step < 3 else "two", delete_before_replace=True))
""",
        ("up", "up", "up"),
    ),
    "an output that is computed from what is not known yet": Scenario(
        """
a = File("a", "a.json", f"a{step}")
class Box(pulumi.ComponentResource):
    def __init__(self, name, props, opts=None):
        super().__init__("test:index:Box", name, props, opts)
        self.register_outputs({"etag": a.etag, "step": step})
Box("box", {"etag": a.etag})
pulumi.export("etag", a.etag.apply(lambda etag: etag.upper()))
""",
        ("preview", "up", "preview", "up", "refresh --preview-only --expect-no-changes", "destroy"),
    ),
    "duplicate names": Scenario(
        """
a = File("a", "a.json", "a")
File("a", "b.json", "a", opts=Options(depends_on=[a]))
""",
        ("preview", "up"),
    ),
    "transforms": Scenario(
        """
def louder(args):
    if args.type_ == "pulumi-python:dynamic/store:File":
        return pulumi.ResourceTransformResult({**args.props, "content": args.props["content"] + "!"}, args.opts)
def of_stack(args):
    if args.name == "leaf":
        opts = Options.merge(args.opts, Options(retain_on_delete=True))
        return pulumi.ResourceTransformResult({**args.props, "content": args.props["content"] + "?"}, opts)
pulumi.runtime.register_resource_transform(of_stack)
box = pulumi.ComponentResource("test:index:Box", "box", {}, Options(transforms=[louder]))
File("leaf", "leaf.json", "leaf", opts=Options(parent=box))
def old_way(args):
    return pulumi.ResourceTransformationResult({**args.props, "content": "old way"}, args.opts)
File("loose", "loose.json", "loose", opts=Options(transformations=[old_way]))
""",
        ("up", "up"),
    ),
}
