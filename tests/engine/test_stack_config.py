"""A stack's settings: reading, changes that keep comments, and encrypted secrets."""

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from lakewright_engine.model.errors import ProjectError, UnsupportedFeatureError
from lakewright_engine.project import yaml_edit
from lakewright_engine.project.project import PulumiProject

COMMENTED = """\
# Tenant acme, owned by the data platform.
config:
  # The region of everything.
  aws:region: eu-central-1  # Frankfurt
  conf:tenant:
    name: acme
    warehouses:
      - name: lake  # the only one
  # The last word.

# After everything.
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProject:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "conformance")
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\nstackConfigDir: tenants\n")
    (tmp_path / "tenants").mkdir()
    (tmp_path / "tenants" / "Pulumi.acme.yaml").write_text(COMMENTED)
    return PulumiProject.load(tmp_path)


def test_set_keeps_comments_and_other_values(project: PulumiProject) -> None:
    settings = project.stack_config("acme")
    settings.set("size", "5")
    settings.set("aws:region", "us-east-1")
    settings.save()
    text = project.stack_file("acme").read_text()
    for comment in ("# Tenant acme", "# The region", "# the only one", "# The last word.", "# After everything."):
        assert comment in text
    assert project.configuration("acme").values == {
        "aws:region": "us-east-1",
        "conf:tenant": '{"name":"acme","warehouses":[{"name":"lake"}]}',
        "conf:size": "5",
    }
    settings.remove("size")
    settings.set("aws:region", "eu-central-1")
    assert yaml.safe_load(settings.text) == yaml.safe_load(COMMENTED)


def test_secret_is_encrypted_and_salted(project: PulumiProject) -> None:
    settings = project.stack_config("acme")
    settings.set("token", "hush", secret=True)
    settings.save()
    text = project.stack_file("acme").read_text()
    assert "hush" not in text
    assert text.startswith("encryptionsalt: v1:")
    assert "# Tenant acme" in text
    reread_settings = project.stack_config("acme")
    assert reread_settings.get("token") == "hush"
    assert reread_settings.mask_secrets("conf:token") == "[secret]"
    configuration = project.configuration("acme")
    assert (configuration.values["conf:token"], configuration.secret_keys) == ("hush", ["conf:token"])


def test_paths_reach_into_structured_values(project: PulumiProject) -> None:
    settings = project.stack_config("acme")
    settings.set("tenant.warehouses[0].name", "sea", path=True)
    settings.set("tenant.warehouses[1]", "true", path=True)
    settings.set('tree["a.b"].x', "007", path=True)
    settings.set("tree.count", "7", path=True)
    settings.set("tree.token", "hush", path=True, secret=True)
    assert settings.get("tenant.warehouses", path=True) == '[{"name":"sea"},true]'
    assert settings.get("tree") == '{"a.b":{"x":"007"},"count":7,"token":"hush"}'
    assert settings.mask_secrets("conf:tree") == '{"a.b":{"x":"007"},"count":7,"token":"[secret]"}'
    settings.remove("tenant.warehouses[0]", path=True)
    assert settings.get("tenant.warehouses", path=True) == "[true]"
    assert settings.get("tenant.nowhere.at.all", path=True) is None
    for impossible in ("tenant.warehouses[5]", "tenant.name.first", "[0]", "tenant["):
        with pytest.raises(ProjectError, match=r"cannot be set|not a path"):
            settings.set(impossible, "x", path=True)


def test_save_creates_missing_file(project: PulumiProject) -> None:
    settings = project.stack_config("new")
    settings.set("a", "b")
    settings.save()
    assert yaml.safe_load(project.stack_file("new").read_text()) == {"config": {"conf:a": "b"}}


def test_save_changes_the_file_that_a_link_names(project: PulumiProject, tmp_path: Path) -> None:
    linked = project.stack_file("acme").rename(tmp_path / "acme.yaml")
    project.stack_file("acme").symlink_to("../acme.yaml")
    settings = project.stack_config("acme")
    settings.set("size", "5")

    settings.save()

    assert project.stack_file("acme").is_symlink()
    assert yaml.safe_load(linked.read_text())["config"]["conf:size"] == "5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("config: [", "acme.yaml:1:10: expected YAML"),
        ("- a", "must be a mapping"),
        ("config: 5", "'config' of .* must be a mapping"),
        ("config:\n  a: 1\n  b: 2\n  a: 3\n", r"acme.yaml:4:3: .* key 'a' is set in .*acme.yaml:2:3, and set again"),
    ],
)
def test_invalid_file_is_reported(project: PulumiProject, text: str, message: str) -> None:
    project.stack_file("acme").write_text(text)
    with pytest.raises(ProjectError, match=message) as caught:
        project.stack_config("acme")
    assert str(project.stack_file("acme")) in str(caught.value)


def test_project_file_with_a_repeated_key_is_refused(project: PulumiProject) -> None:
    project.file.write_text(project.file.read_text() + "name: other\n")

    with pytest.raises(
        ProjectError, match=r"Pulumi.yaml:\d+:1: .* key 'name' is set in .*Pulumi.yaml:1:1, and set again"
    ):
        PulumiProject.load(project.file.parent)


def test_settings_that_only_the_cli_supports_are_refused(project: PulumiProject) -> None:
    project.stack_file("acme").write_text("secretsprovider: awskms://key\n")
    with pytest.raises(UnsupportedFeatureError, match="awskms"):
        project.configuration("acme")
    project.stack_file("acme").write_text("environment: [prod]\n")
    with pytest.raises(UnsupportedFeatureError, match="ESC"):
        project.configuration("acme")


def test_project_defaults_apply_to_missing_values(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text(
        "name: conf\nruntime: {name: python, options: {virtualenv: venv}}\nmain: infra\n"
        "backend: {url: 'file://~/state'}\n"
        "config:\n  aws:region: eu\n  size: {type: integer, default: 3}\n  owner: {type: string}\n"
    )
    (tmp_path / "Pulumi.a.yaml").write_text("config:\n  conf:owner: ada\n  conf:size: 4\n")
    project = PulumiProject.load(tmp_path)
    assert project.configuration("a").values == {"aws:region": "eu", "conf:size": "4", "conf:owner": "ada"}
    with pytest.raises(ProjectError, match="conf:owner"):
        project.configuration("b")
    assert project.program == tmp_path / "infra"
    assert project.virtualenv == tmp_path / "venv"
    with pytest.raises(ProjectError, match="bin/python"):
        _ = project.python


def test_backend_is_chosen_as_by_the_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\n")
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    monkeypatch.delenv("PULUMI_CREDENTIALS_PATH", raising=False)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PULUMI_ACCESS_TOKEN", raising=False)
    assert PulumiProject.load(tmp_path).backend().storage.root == tmp_path / ".lakewright" / "state" / ".pulumi"
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "token")
    assert PulumiProject.load(tmp_path).state_url == "https://api.pulumi.com"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "credentials.json").write_text('{"current": "file:///logged/in"}')
    assert PulumiProject.load(tmp_path).state_url == "file:///logged/in"
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: python\nbackend: {url: 'file://~'}\n")
    assert PulumiProject.load(tmp_path).backend().storage.root == Path.home() / ".pulumi"
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file://.")
    monkeypatch.chdir(tmp_path)
    assert PulumiProject.load(tmp_path).backend().storage.root == tmp_path / ".pulumi"


def test_missing_project_and_other_runtime_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"no Pulumi.yaml found in .* set the project's folder with -C DIR"):
        PulumiProject.load(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: conf\nruntime: nodejs\n")
    with pytest.raises(UnsupportedFeatureError, match="nodejs"):
        PulumiProject.load(tmp_path)


names = st.text("abc", min_size=1, max_size=3)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@example(before={"a": "\x85"}, path=["b"], value="\u2028")
@given(before=st.dictionaries(names, trees, max_size=4), path=st.lists(names, min_size=1, max_size=2), value=trees)
def test_edits_of_any_yaml_keep_its_data(before: dict, path: list[str], value: object) -> None:
    edited = yaml.safe_load(yaml_edit.set_entry(yaml_edit.dump_yaml(before), path, value))
    at = edited
    for key in path:
        at = at[key]
    assert at == value
    assert {key: item for key, item in edited.items() if key != path[0]} == {
        key: item for key, item in before.items() if key != path[0]
    }
