"""Programs for `--target`, `--exclude` and `--replace`; see options.py."""

from __future__ import annotations

from programs.options import Scenario

FILE = "urn:pulumi:dev::conf::pulumi-python:dynamic/store:File::"

PROGRAMS = {
    "targets of an update": Scenario(
        """
a = File("a", "a.json", f"a{step}")
b = File("b", "b.json", a.etag)
c = File("c", "c.json", f"c{step}")
pulumi.export("c", c.etag)
if step > 1:
    n = File("new", "new.json", "n")
    m = File("newer", "newer.json", n.etag)
    pulumi.export("n", n.etag)
    pulumi.export("m", m.id)
""",
        (
            "up",
            "preview --target **::a",
            "up --target **::a",
            "up --target **::a --target-dependents",
            f"up --target {FILE}c --target **::new",
            "up --target **Stack::conf-dev",
            "up --target **Stack::conf-dev --target-dependents",
        ),
    ),
    "a target that needs what is not created": Scenario(
        """
x = File("x", "x.json", f"x{step}")
if step > 1:
    a = File("a", "a.json", "a")
    b = File("b", "b.json", a.etag)
    box = pulumi.ComponentResource("test:index:Box", "box", {})
    box.register_outputs({"x": x.etag})
    child = File("child", "child.json", "c", opts=Options(parent=box))
""",
        (
            "up",
            "preview --target **::b",
            "up --target **::b",
            "up --target **::child",
            "up --target **::b --target **::a",
            "up --target **::box --target-dependents",
        ),
    ),
    "targets that are unknown": Scenario(
        """
File("a", "a.json", f"a{step}")
if step > 4:
    File("b", "b.json", f"b{step}")
""",
        (
            "up",
            f"up --target {FILE}none",
            f"destroy --target {FILE}none",
            f"refresh --target {FILE}none",
            f"up --target {FILE}b",
            f"up --refresh --target {FILE}none",
            f"up --replace {FILE}none",
            f"refresh --exclude {FILE}none",
            f"up --exclude {FILE}none",
            "up --target **::none",
            f"preview --target {FILE}none",
        ),
    ),
    "targets of a destroy": Scenario(
        """
a = File("a", "a.json", "a")
b = File("b", "b.json", a.etag)
c = File("c", "c.json", "c")
box = pulumi.ComponentResource("test:index:Box", "box", {})
File("child", "child.json", "c", opts=Options(parent=box))
File("after", "after.json", "c", opts=Options(depends_on=[box]))
""",
        (
            "up",
            "destroy --target **::a --preview-only",
            "destroy --target **::a",
            "destroy --target **::a --target-dependents --preview-only",
            "destroy --target **::a --target-dependents",
            "destroy --target **::box",
            f"destroy --target **::box --target **::child --target {FILE}after",
            "up",
            "destroy --target **::after --target **File::c --refresh",
            "destroy --target **Stack::conf-dev --target-dependents",
            "destroy",
        ),
    ),
    "exclusions of a destroy": Scenario(
        """
a = File("a", "a.json", "a")
b = File("b", "b.json", a.etag)
c = File("c", "c.json", b.etag)
box = pulumi.ComponentResource("test:index:Box", "box", {})
File("child", "child.json", "c", opts=Options(parent=box))
""",
        (
            "up",
            "destroy --exclude **::b --preview-only",
            "destroy --exclude **::b",
            "up",
            "destroy --exclude **::child",
        ),
    ),
    "targets of a refresh": Scenario(
        """
from filestore import root
a = File("a", "a.json", "a")
b = File("b", "b.json", a.etag)
c = File("c", "c.json", "c")
if step in (2, 7):
    for name in ("a", "b", "c"):
        (root() / f"{name}.json").write_text('{"content": "drift%s", "path": "%s.json"}' % (step, name))
if step == 5:
    (root() / "a.json").unlink()
""",
        (
            "up",
            "up",
            "refresh --target **::b",
            "refresh --exclude **::a --exclude **::b --preview-only",
            "up --target **::c",
            "refresh --exclude **::c",
            "up",
            "refresh --exclude **::a --exclude-dependents",
            "refresh --target **::a --target-dependents",
            "up --refresh --target **::c",
        ),
    ),
    "deletions of a targeted update": Scenario(
        """
if step == 1:
    a = File("a", "a.json", "a")
    b = File("b", "b.json", a.etag)
    c = File("c", "c.json", "c")
    e = File("e", "e.json", "e")
File("d", f"d{step}.json", f"d{step}")
""",
        (
            "up",
            "preview --target **::c",
            "up --target **::c",
            "preview --target **::a",
            "up --target **::a",
            "up --target **::d",
            "up --target **::a --target-dependents",
            "up --exclude **::d",
        ),
    ),
    "exclusions that keep what they need": Scenario(
        """
if step == 1:
    a = File("a", "a.json", "a")
    b = File("b", "b.json", a.etag)
    c = File("c", "c.json", b.etag)
""",
        ("up", "up --exclude **::b", "up --exclude **::b --exclude-dependents", "up"),
    ),
    "an untargeted resource needs what the program dropped": Scenario(
        """
if step == 1:
    a = File("a", "a.json", "a")
b = File("b", "b.json", a.etag if step == 1 else "b", opts=Options(depends_on=[a] if step == 1 else []))
if step > 1:
    c = File("c", "c.json", f"c{step}")
""",
        ("up", "up --target **::c", "up --target **::a", "up --target **::a --target **::b"),
    ),
    "a replacement on demand": Scenario(
        """
first = Options(delete_before_replace=True)
a = File("a", "a.json", "a", opts=first)
b = File("b", "b.json", a.etag, opts=first)
c = File("c", "c.json", f"c{step}", opts=first)
d = File("d", "d.json", "d")
box = pulumi.ComponentResource("test:index:Box", "box", {})
File("child", "child.json", "c", opts=Options(parent=box, delete_before_replace=True))
""",
        (
            "up",
            "preview --replace **::a",
            "up --replace **::a",
            "up --replace **::a --target **::b",
            f"up --replace {FILE}b --target **::b",
            "up --replace **::d --exclude **::c",
            "up --replace **::box",
        ),
    ),
    "exclusions of an update": Scenario(
        """
a = File("a", "a.json", f"a{step}")
b = File("b", "b.json", a.etag)
c = File("c", "c.json", f"c{step}")
if step > 1:
    n = File("new", "new.json", "n")
""",
        (
            "up",
            "preview --exclude **::a",
            "up --exclude **::a",
            "up --exclude **::a --exclude-dependents",
            "up --exclude **::new --exclude **::c",
            "up",
        ),
    ),
    "a dependency on an excluded creation": Scenario(
        """
a = File("a", "a.json", f"a{step}")
if step > 1:
    n = File("new", "new.json", "n")
    m = File("newer", "newer.json", n.etag)
    box = pulumi.ComponentResource("test:index:Box", "box", {})
    child = File("child", "child.json", "c", opts=Options(parent=box))
""",
        ("up", "up --exclude **::new --exclude-dependents --exclude **::box"),
    ),
    "an untargeted resource with another name": Scenario(
        """
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("test:index:Box", name, {}, opts)
        File(f"{name}-inner", "inner.json", f"i{step}", opts=Options(parent=self))
        self.register_outputs({"step": step})
if step == 1:
    Box("box")
    p = File("plain", "p.json", "p")
else:
    Box("bin", Options(aliases=[Alias(name="box")]))
    p = File("renamed", "p.json", "p", opts=Options(aliases=[Alias(name="plain")]))
File("next", "next.json", p.etag, opts=Options(depends_on=[p]))
File("other", "other.json", f"o{step}")
""",
        ("up", "up --target **::other", "up --target **::next"),
    ),
    "a target that is deleted before it is replaced": Scenario(
        """
a = File("a", f"a{step}.json", "a", opts=Options(delete_before_replace=True))
b = File("b", a.path.apply(lambda path: "b" + path), "b", opts=Options(delete_before_replace=True))
c = File("c", "c.json", a.path)
""",
        ("up", "preview --target **::a", "up --target **::a", "up --target **::a --target-dependents", "up"),
    ),
    "dependencies that changed": Scenario(
        """
if step == 1:
    a = File("a", "a.json", "a1")
    b = File("b", "b.json", "b1", opts=Options(depends_on=[a]))
    c = File("c", "c.json", "c1")
    d = File("d", "d.json", "d1", opts=Options(depends_on=[c]))
elif step < 4:
    d = File("d", "d.json", f"d{step}")
    a = File("a", "a.json", "a1")
    b = File("b", "b.json", f"b{step}", opts=Options(depends_on=[d]))
else:
    b = File("b", "b.json", f"b{step}")
    a = File("a", "a.json", f"a{step}", opts=Options(depends_on=[b]))
""",
        ("up", "up --target **::b", "up --target **::d", "up --target **::a", "up"),
    ),
}
