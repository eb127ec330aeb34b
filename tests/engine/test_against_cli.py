"""Programs that use what the recorded cases do not, run side by side: the embedded engine and the CLI do the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from stackrunner import Outcome, Stack
from test_conformance import normal

HEADER = """
import os
import pulumi
from filestore import File
from pulumi import Alias, ResourceOptions as Options
step = int(os.environ["STEP"])
"""

HOOKS = """
import json
from filestore import FileProvider, root
from pulumi import ErrorHook, ResourceHook, ResourceHookBinding as Hooks, ResourceHookOptions
from pulumi.dynamic import Resource
def shown(properties):
    kept = {key: value for key, value in (properties or {}).items() if key != "__provider"}
    return {key: value if isinstance(value, (str, int)) else type(value).__name__ for key, value in kept.items()}
def note(*told):
    path = root() / "hooks.json"
    told_before = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps(sorted([*told_before, [step, *told]], key=json.dumps)))
def hook(name, fails=(), **options):
    def tell(args):
        properties = [shown(part) for part in (args.new_inputs, args.old_inputs, args.new_outputs, args.old_outputs)]
        note(name, args.urn, args.id, args.name, args.type, properties)
        if step in fails:
            raise ValueError(f"{name} fails")
    return ResourceHook(name, tell, ResourceHookOptions(**options))
"""
"""Hooks that write down what they are told, sorted: steps that do not depend on each other have no order."""

HOOKED_BOX = """
kinds = [f"{when}_{verb}" for verb in ("create", "update", "delete") for when in ("before", "after")]
hooks = Hooks(**{kind: [hook(kind), hook(f"dry_{kind}", on_dry_run=True)] for kind in kinds})
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts):
        super().__init__("test:index:Box", name, {"step": step}, opts)
        self.register_outputs({"done": step})
token = pulumi.Output.secret("hidden")
a = File("a", "a.json", f"content {step}", token=token, opts=Options(hooks=hooks))
box = Box("box", Options(hooks=hooks, depends_on=[a]))
"""


@dataclass(frozen=True)
class Comparison:
    """A program, and the commands for its steps (the program sees the number of the step in `step`)."""

    program: str
    commands: tuple[str, ...]


PROGRAMS = {
    "aliases of a component are inherited": Comparison(
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
    "a component moves to another parent": Comparison(
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
    "protect, retain and import": Comparison(
        """
if step < 3:
    File("kept", "kept.json", "k", opts=Options(retain_on_delete=True))
    parent = pulumi.ComponentResource("test:index:Box", "box", {}, Options(protect=step < 2))
    File("guarded", "guarded.json", "g", opts=Options(parent=parent))
""",
        ("up", "destroy", "up", "up", "destroy"),
    ),
    "ignored and replacing properties": Comparison(
        """
File("a", "a.json", f"content {step}", opts=Options(ignore_changes=["content"]))
File("b", "b.json", f"content {step}", opts=Options(replace_on_changes=["content"], delete_before_replace=True))
File("c", f"c{step}.json", "c", opts=Options(delete_before_replace=True))
""",
        ("up", "preview", "up"),
    ),
    "deleted with another": Comparison(
        """
if step < 2:
    a = File("a", "a.json", "a")
    File("b", "b.json", "b", opts=Options(deleted_with=a))
""",
        ("up", "up", "destroy"),
    ),
    "replaced with another": Comparison(
        """
a = File("a", f"a{step}.json", "a")
File("b", f"b{step}.json", "b", opts=Options(replace_with=[a]))
File("c", f"c.json", "c", opts=Options(deleted_with=a, delete_before_replace=True))
""",
        ("up", "up"),
    ),
    "a chain deleted before it is replaced": Comparison(
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
    "a failed step in the middle": Comparison(
        """
a = File("a", "a.json", "a")
content = "fail" if step == 2 else f"b{step}"
b = File("b", "b.json", content, opts=Options(replace_on_changes=["content"], depends_on=[a]))
c = File("c", "c.json", "c", opts=Options(depends_on=[b]))
pulumi.export("c", c.etag)
""",
        ("up", "up", "up", "destroy"),
    ),
    "a program that raises": Comparison(
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
    "secret outputs and unknowns": Comparison(
        """
token = pulumi.Output.secret({"x": [1, 2.5, True]})
a = File("a", "a.json", f"a{step}", token=token, opts=Options(additional_secret_outputs=["etag"]))
b = File("b", "b.json", a.etag.apply(lambda e: e + "!"), opts=Options(depends_on=[a]))
pulumi.export("etag", a.etag)
pulumi.export("nested", {"b": b.content, "list": [1, 2.0, None, "x"]})
""",
        ("up", "preview", "up", "up --refresh", "refresh"),
    ),
    "an object that the stack does not own": Comparison(
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
    "a replacement that fails half-way": Comparison(
        """
content = "fail" if step == 2 else "ok"
a = File("a", f"a{step}.json", content, opts=Options(delete_before_replace=True))
b = File("b", f"b{step}.json", content, opts=Options(depends_on=[a] if step == 3 else []))
""",
        ("up", "up", "preview", "up", "destroy"),
    ),
    "a replacement trigger": Comparison(
        """
File("a", "a.json", "a", opts=Options(replacement_trigger="one" if step < 3 else "two", delete_before_replace=True))
""",
        ("up", "up", "up"),
    ),
    "an output that is computed from what is not known yet": Comparison(
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
    "duplicate names": Comparison(
        """
a = File("a", "a.json", "a")
File("a", "b.json", "a", opts=Options(depends_on=[a]))
""",
        ("preview", "up"),
    ),
    "transforms": Comparison(
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
    "hooks around creations and updates": Comparison(
        HOOKS + HOOKED_BOX,
        ("preview", "up", "preview", "up"),
    ),
    "hooks around replacements and deletions": Comparison(
        HOOKS
        + HOOKED_BOX
        + """
c = File("c", "c.json" if step == 1 else "c2.json", "c", opts=Options(hooks=hooks, depends_on=[box]))
if step < 3:
    content = "d" if step == 1 else "delete-first"
    File("d", "d.json" if step == 1 else "d2.json", content, opts=Options(hooks=hooks, depends_on=[c]))
""",
        ("up", "up", "up"),
    ),
    "hooks that fail": Comparison(
        HOOKS
        + """
hooks = Hooks(
    before_create=[hook("before_create", fails=[1])],
    after_create=[hook("ignored", fails=[2], ignore_errors=True), hook("after_create", fails=[2])],
    before_update=[hook("before_update", fails=[4])],
    after_update=[hook("after_update", fails=[5])],
    before_delete=[hook("before_delete", fails=[7])],
    after_delete=[hook("after_delete", fails=[8])],
)
a = File("a", "a.json", f"content {step}")
if step < 7:
    b = File("b", "b.json", f"content {step}", opts=Options(depends_on=[a], hooks=hooks))
    File("c", "c.json", f"content {step}", opts=Options(depends_on=[b]))
""",
        ("up", "up", "up", "up", "up", "destroy", "up", "up", "up"),
    ),
    "hooks of a component that fail": Comparison(
        HOOKS
        + """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts):
        super().__init__("test:index:Box", name, {"step": step}, opts)
        self.register_outputs({"done": step})
hooks = Hooks(after_create=[hook("after_create", fails=[1])], before_update=[hook("before_update", fails=[2])])
Box("box", Options(hooks=hooks))
""",
        ("up", "up", "up"),
    ),
    "hooks that are not there when they are needed": Comparison(
        HOOKS
        + """
if step == 1:
    File("a", "a.json", "a", opts=Options(hooks=Hooks(before_delete=[hook("gone")])))
if step == 4:
    hook("gone")
""",
        ("up", "preview", "up", "up"),
    ),
    "hooks that a transform binds, without a name": Comparison(
        HOOKS
        + """
def bind(args):
    opts = Options.merge(args.opts, Options(hooks=Hooks(after_create=[hook("bound")])))
    return pulumi.ResourceTransformResult(args.props, opts)
def unnamed(args):
    note("unnamed", args.name)
File("a", "a.json", "a", opts=Options(transforms=[bind], hooks=Hooks(before_create=[unnamed])))
""",
        ("up", "up"),
    ),
    "a hook registered twice": Comparison(
        HOOKS
        + """
File("a", "a.json", "a", opts=Options(hooks=Hooks(before_create=[hook("twice"), hook("twice")])))
""",
        ("up",),
    ),
    "error hooks": Comparison(
        HOOKS
        + """
class Flaky(FileProvider):
    def _refuse(self, verb):
        if not (root() / "repaired").exists():
            raise RuntimeError(f"no {verb} yet")
        (root() / "repaired").unlink()
    def create(self, props):
        self._refuse("create")
        return super().create(props)
    def update(self, id_, olds, news):
        self._refuse("update")
        return super().update(id_, olds, news)
    def delete(self, id_, props):
        self._refuse("delete")
        super().delete(id_, props)
def repair(args):
    properties = [shown(part) for part in (args.new_inputs, args.old_inputs, args.old_outputs)]
    note(args.urn, args.id, args.failed_operation, len(args.errors), properties)
    if step == 3:
        raise ValueError("no idea how to repair it")
    if len(args.errors) == 3:
        (root() / "repaired").touch()
    return step != 1
class Thing(Resource, module="store", name="Thing"):
    pass
if step < 5:
    hooks = Hooks(on_error=[ErrorHook("repair", repair)])
    Thing(Flaky(), "a", {"path": "a.json", "content": f"content {step}", "etag": None}, Options(hooks=hooks))
else:
    ErrorHook("repair", repair)
""",
        ("up", "up", "up", "up", "up"),
    ),
}


@pytest.mark.pulumi_cli
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_engines_do_the_same(name: str, tmp_path: Path) -> None:
    comparison = PROGRAMS[name]
    ours = Stack(tmp_path / "ours", HEADER + comparison.program)
    theirs = Stack(tmp_path / "theirs", HEADER + comparison.program)
    for number, command in enumerate(comparison.commands, 1):
        env = {"STEP": str(number)}
        got, wanted = ours.run(*command.split(), env=env), theirs.cli(*command.split(), env=env)
        where = f"step {number}, {command}\nours: {got.messages}\ntheirs: {''.join(wanted.messages)}"
        assert got.exit == (1 if wanted.exit not in (0, 7) else wanted.exit), where
        if got.exit == 0:
            assert sorted_steps(got) == sorted_steps(wanted), where
            assert sorted(got.provider_calls) == sorted(wanted.provider_calls), where
        assert got.files == wanted.files, where
        assert normal(ours.resources()) == normal(theirs.resources()), where


def sorted_steps(outcome: Outcome) -> list[tuple[str, ...]]:
    return sorted((one["op"], one["type"], one["name"]) for one in outcome.steps)
