"""Programs that replace resources: chains, shared dependents, inverted dependencies, protection."""

from __future__ import annotations

from programs.options import Scenario

PROGRAMS = {
    "a dependent of two replaced resources": Scenario(
        """
content = "delete-first" if step in (2, 3) else "one"
a = File("a", f"a{max(step, 2)}.json", content) if step > 1 else File("a", "a1.json", content)
b = File("b", f"b{max(step, 2)}.json", content) if step > 1 else File("b", "b1.json", content)
both = File("both", pulumi.Output.concat(a.path, "-", b.path), "fine")
File("last", pulumi.Output.concat(both.path, "-last"), "fine")
""",
        ("up", "preview", "up", "destroy"),
    ),
    "a replacement that fails after its dependents went": Scenario(
        """
content = "fail" if step == 2 else "one"
a = File("a", f"a{step}.json", content, opts=Options(delete_before_replace=True))
b = File("b", pulumi.Output.concat(a.path, "-b"), "fine")
c = File("c", "c.json", a.etag)
""",
        ("up", "up", "preview", "up", "destroy"),
    ),
    "dependencies that turn round while a deletion fails": Scenario(
        """
class Sticky(FileProvider):
    def delete(self, id_, props):
        if step == 2:
            raise RuntimeError("the store refused the object")
        super().delete(id_, props)
class Thing(Resource, module="store", name="File"):
    def __init__(self, name, path, content, opts=None):
        super().__init__(Sticky(), name, {"path": path, "content": content, "etag": None}, opts)
if step == 1:
    a = File("a", "a1.json", "one")
    Thing("b", "b1.json", "one", Options(depends_on=[a]))
else:
    b = Thing("b", "b2.json", "one")
    File("a", "a2.json", "one", opts=Options(depends_on=[b]))
""",
        ("up", "up", "destroy --preview-only", "destroy"),
    ),
    "a protected resource in the way of a replacement": Scenario(
        """
a = File("a", f"a{step}.json", "one", opts=Options(protect=step < 4))
b = File("b", a.path, "fine")
File("c", f"c{max(step, 2)}.json", "fine")
""",
        ("up", "preview", "preview", "up"),
    ),
    "a protected dependent of a replaced resource": Scenario(
        """
a = File("a", f"a{step}.json", "delete-first" if step > 1 else "one")
File("b", a.path, "fine", opts=Options(protect=True))
""",
        ("up", "preview", "up"),
    ),
    "children of a replaced resource": Scenario(
        """
root = File("root", f"root{step}.json", "delete-first" if step == 2 else "one")
named = File("named", pulumi.Output.concat(root.path, "-named"), "fine", opts=Options(parent=root))
File("leaf", pulumi.Output.concat(named.path, "-leaf"), "fine", opts=Options(parent=named))
File("plain", "plain.json", "fine", opts=Options(parent=root))
File("ordered", "ordered.json", "fine", opts=Options(parent=root, depends_on=[root]))
""",
        ("up", "up", "destroy"),
    ),
    "dependents of a component are deleted before its children": Scenario(
        """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("test:index:Box", name, {}, opts)
        self.inner = File(f"{name}-inner", f"{name}.json", "i", opts=Options(parent=self))
if step == 1:
    box = Box("box")
    File("user", "user.json", "u", opts=Options(depends_on=[box]))
    File("other", "other.json", "u")
""",
        ("up", "up", "destroy"),
    ),
    "everything that a replacement takes along": Scenario(
        """
step = min(step, 2)
first = "delete-first" if step == 2 else "one"
a = File("a", f"a{step}.json", first)
b = File("b", "b.json", "fine", opts=Options(replace_with=[a]))
File("c", pulumi.Output.concat(b.path, "-c"), "fine")
File("d", pulumi.Output.concat(a.path, "-d"), "fine", opts=Options(replace_with=[a]))
if step == 1:
    File("e", pulumi.Output.concat(a.path, "-e"), "fine")
box = pulumi.ComponentResource("test:index:Box", "box", {}, Options(replace_with=[a]))
File("f", "f.json", "fine", opts=Options(parent=box))
File("g", f"g{step}.json", "fine", opts=Options(replacement_trigger=a.path))
""",
        ("up", "up", "destroy"),
    ),
}
