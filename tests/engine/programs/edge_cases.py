"""Edge cases: empty programs, unusual combinations of options, renames over several steps."""

from __future__ import annotations

from programs.options import Scenario

PROGRAMS = {
    "an empty program": Scenario("", ("preview", "up", "up", "destroy")),
    "components and nothing else": Scenario(
        """
box = pulumi.ComponentResource("test:index:Box", "box", {"step": 1})
if step != 2:
    pulumi.ComponentResource("test:index:Box", "inner", {}, Options(parent=box))
box.register_outputs({"step": step})
pulumi.export("step", step)
""",
        ("up", "up", "preview", "up --refresh", "destroy"),
    ),
    "outputs that change and nothing else": Scenario(
        """
pulumi.export("step", step)
if step < 3:
    pulumi.export("gone", pulumi.Output.secret([step]))
""",
        ("up", "preview", "up", "up --expect-no-changes"),
    ),
    "outputs of programs that end early": Scenario(
        """
if step == 2:
    raise ValueError("before the first output")
pulumi.export("first", step)
if step == 3:
    raise ValueError("before the second output")
if step != 4:
    pulumi.export("second", pulumi.Output.secret(step))
""",
        ("up", "up", "up", "up"),
    ),
    "outputs that become secret": Scenario(
        """
box = pulumi.ComponentResource("test:index:Box", "box", {})
value = pulumi.Output.secret("v") if step == 2 else "v"
box.register_outputs({"token": value, "nested": {"token": value}})
pulumi.export("token", value)
pulumi.export("nested", {"token": value})
""",
        ("up", "up", "preview", "up"),
    ),
    "secrets within a secret output": Scenario(
        """
conf = {"host": "h", "password": pulumi.Output.secret("p")}
box = pulumi.ComponentResource("test:index:Box", "box", {})
box.register_outputs({"conf": conf, "secret": pulumi.Output.secret(conf)})
File("a", "a.json", f"a{step}", token=conf, opts=Options(additional_secret_outputs=["token"]))
pulumi.export("conf", pulumi.Output.secret(conf))
""",
        ("up", "up", "preview"),
    ),
    "ignored paths within properties": Scenario(
        """
class Nested(FileProvider):
    def diff(self, _id, olds, news):
        return DiffResult(changes=olds.get("content") != news.get("content"))
    def create(self, props):
        return CreateResult(props["path"], {"path": props["path"], "content": props["content"]})
    def update(self, id_, olds, news):
        return UpdateResult({"path": news["path"], "content": news["content"]})
class Thing(Resource, module="store", name="Thing"):
    pass
content = {"kept": step, "list": [step, 2], "deep": {"a.b": step, "new" if step > 1 else "old": 1}, "open": 7}
ignored = ["content.kept", "content.list[0]", 'content.deep["a.b"]', "content.deep.new", "content.deep.old"]
Thing(Nested(), "a", {"path": "a.json", "content": content}, Options(ignore_changes=ignored if step < 4 else []))
Thing(Nested(), "b", {"path": "b.json", "content": content}, Options(ignore_changes=["content.*"]))
Thing(Nested(), "c", {"path": "c.json", "content": content if step != 2 else {}}, Options(ignore_changes=["*"]))
""",
        ("up", "preview", "up", "up"),
    ),
    "ignored paths within secrets": Scenario(
        """
class Nested(FileProvider):
    def diff(self, _id, olds, news):
        return DiffResult(changes=any(olds.get(key) != news.get(key) for key in ("conn", "list", "deep", "pair")))
    def create(self, props):
        return CreateResult(props["path"], {key: value for key, value in props.items() if key != "__provider"})
    def read(self, id_, props):
        return ReadResult(id_, props, {key: props[key] for key in ("path", "conn", "list", "deep", "pair")})
    def update(self, id_, olds, news):
        return UpdateResult({key: value for key, value in news.items() if key != "__provider"})
class Thing(Resource, module="store", name="Thing"):
    pass
secret = pulumi.Output.secret if step == 1 else lambda value: value
user = "u" if step == 1 else "u2"
pw = "SECRET" if step == 1 else "placeholder"
Thing(Nested(), "a", {
    "path": "a.json",
    "conn": secret({"user": user, "pw": pw}),
    "list": secret([pw, user]),
    "deep": {"inner": secret({"pw": pw, "list": [{"pw": pw}, user]}), "value": secret(pw)},
    "pair": pulumi.Output.secret({"pw": pw, "user": user}) if step > 1 else {"pw": secret(pw), "user": user},
}, Options(ignore_changes=["conn.pw", "list[0]", "deep.inner.pw", "deep.inner.list[0].pw", "deep.value", "pair.pw"]))
Thing(Nested(), "b", {
    "path": "b.json",
    "conn": secret({"pw": pw}),
    "list": secret([pw, pw]),
    "deep": {"inner": secret({"pw": pw})},
    "pair": {},
}, Options(ignore_changes=["conn.*", "list[*]", "deep.*.pw"]))
""",
        ("up", "preview", "up", "preview --expect-no-changes", "up --refresh --expect-no-changes"),
    ),
    "a protected resource that is replaced, renamed and deleted": Scenario(
        """
if step < 4:
    name, aliases = ("a", None) if step < 3 else ("renamed", [Alias(name="a")])
    path = "a.json" if step != 2 else "other.json"
    File(name, path, "a", opts=Options(protect=True, aliases=aliases))
elif step == 5:
    File("renamed", "a.json", "a")
""",
        ("up", "up", "up", "up", "up", "up"),
    ),
    "a resource that is renamed at every step": Scenario(
        """
names = ["one", "two", "three"]
name = names[min(step, 3) - 1]
box = pulumi.ComponentResource("test:index:Box", f"box-{name}", {}, Options(
    aliases=[Alias(name=f"box-{other}") for other in names if other != name]))
a = File(f"a-{name}", "a.json", f"a{step}", opts=Options(
    parent=box, aliases=[Alias(name=f"a-{other}") for other in names if other != name]))
File("b", "b.json", a.etag, opts=Options(depends_on=[a], deleted_with=a))
""",
        ("up", "preview", "up", "up", "up", "destroy"),
    ),
}
