"""Programs with hooks: around steps, after failures, missing, failing, bound by a transform."""

from __future__ import annotations

from programs.options import Scenario

HOOKS = """
import json
from filestore import FileProvider, root
from pulumi import ErrorHook, ResourceHook, ResourceHookBinding as Hooks, ResourceHookOptions
from pulumi.dynamic import Resource
def summarize(properties):
    kept = {key: value for key, value in (properties or {}).items() if key != "__provider"}
    return {key: value if isinstance(value, (str, int)) else type(value).__name__ for key, value in kept.items()}
def note(*arguments):
    path = root() / "hooks.json"
    recorded = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps(sorted([*recorded, [step, *arguments]], key=json.dumps)))
def hook(name, fails=(), **options):
    def tell(args):
        given = (args.new_inputs, args.old_inputs, args.new_outputs, args.old_outputs)
        properties = [summarize(part) for part in given]
        note(name, args.urn, args.id, args.name, args.type, properties)
        if step in fails:
            raise ValueError(f"{name} fails")
    return ResourceHook(name, tell, ResourceHookOptions(**options))
"""
"""Hooks that record their arguments, sorted, because independent steps have no order."""

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

PROGRAMS = {
    "hooks around creations and updates": Scenario(
        HOOKS + HOOKED_BOX,
        ("preview", "up", "preview", "up"),
    ),
    "hooks around replacements and deletions": Scenario(
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
    "hooks that fail": Scenario(
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
    "hooks of a component that fail": Scenario(
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
    "hooks that are not there when they are needed": Scenario(
        HOOKS
        + """
if step == 1:
    File("a", "a.json", "a", opts=Options(hooks=Hooks(before_delete=[hook("gone")])))
if step == 4:
    hook("gone")
""",
        ("up", "preview", "up", "up"),
    ),
    "hooks that a transform binds, without a name": Scenario(
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
    "a hook registered twice": Scenario(
        HOOKS
        + """
File("a", "a.json", "a", opts=Options(hooks=Hooks(before_create=[hook("twice"), hook("twice")])))
""",
        ("up",),
    ),
    "error hooks": Scenario(
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
    properties = [summarize(part) for part in (args.new_inputs, args.old_inputs, args.old_outputs)]
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
