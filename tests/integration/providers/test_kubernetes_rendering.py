"""The kubernetes provider compared with rendered files and states of the real provider: tests/kubernetes/render."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import grpc
import pytest
from lakewright_sandbox.providers.protocol.properties import Properties, from_struct, to_struct
from pulumi.runtime.proto import provider_pb2

CASE = Path(__file__).parents[2] / "kubernetes" / "render"
STATE = [r for r in json.loads((CASE / "state.json").read_text()) if r["type"].startswith("kubernetes:")]
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
ACCOUNT = "kubernetes:core/v1:ServiceAccount"
SECRET = "kubernetes:core/v1:Secret"


@pytest.fixture
def rendered_folder(tmp_path: Path) -> Path:
    return tmp_path / "rendered"


@pytest.fixture
def kubernetes(kubernetes_port: int, connect: Any, rendered_folder: Path) -> Any:
    return connect(kubernetes_port).configure({"renderYamlToDirectory": str(rendered_folder)})


def config_map(data: Properties | None = None, **metadata: Any) -> Properties:
    full_metadata = {"name": "catalog", "namespace": "tenant-a"} | metadata
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": full_metadata, "data": data or {"a": "1"}}


def files(rendered_folder: Path) -> list[str]:
    return sorted(str(path.relative_to(rendered_folder)) for path in rendered_folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("resource", STATE, ids=lambda r: r["urn"].rsplit("::", 1)[-1])
def test_state_and_file_equal_the_recordings(kubernetes: Any, rendered_folder: Path, resource: Properties) -> None:
    inputs, kind = resource["inputs"], resource["type"]
    checked = kubernetes.check(kind, inputs)
    assert from_struct(checked.inputs) == inputs

    resource_id, outputs = kubernetes.create(kind, inputs)

    assert resource_id == resource["id"]
    assert re.fullmatch(r"pulumi-kubernetes-[0-9a-f]{8}", outputs["__fieldManager"])
    assert outputs | {"__fieldManager": ""} == resource["outputs"] | {"__fieldManager": ""}
    (file,) = files(rendered_folder)
    # Recorded files and state are of two runs: the random suffix of the auto-named object differs.
    suffix = re.compile(r"auto-named-[0-9a-f]{8}")
    (reference,) = [
        path
        for path in (CASE / "rendered").iterdir()
        if suffix.sub("auto-named", path.name) == suffix.sub("auto-named", Path(file).name)
    ]
    text = (rendered_folder / file).read_text()
    assert suffix.sub("auto-named", text) == suffix.sub("auto-named", reference.read_text())
    assert file.startswith("1-manifest/")
    assert stat.S_IMODE((rendered_folder / file).stat().st_mode) == 0o600

    assert kubernetes.list_changes(kind, resource_id, resource["outputs"], inputs) == []
    assert kubernetes.read(kind, resource_id, outputs, inputs) == (resource_id, outputs, inputs)
    kubernetes.delete(kind, resource_id, outputs)
    kubernetes.delete(kind, resource_id, outputs)
    assert files(rendered_folder) == []


def test_an_object_without_a_name_gets_a_permanent_name(kubernetes: Any) -> None:
    news = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "tenant-a"}}
    first = from_struct(kubernetes.check(ACCOUNT, news, name="auto-named").inputs)
    assert re.fullmatch(r"auto-named-[0-9a-f]{8}", first["metadata"]["name"])
    assert first["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}
    assert from_struct(kubernetes.check(ACCOUNT, news, name="auto-named").inputs) == first
    assert from_struct(kubernetes.check(ACCOUNT, news, first, "renamed").inputs) == first


def test_custom_resource_definitions_are_rendered_first(kubernetes: Any, rendered_folder: Path) -> None:
    kind = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
    inputs = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com"},
    }
    kubernetes.create(kind, inputs)
    assert files(rendered_folder) == [
        "0-crd/apiextensions.k8s.io_v1-customresourcedefinition-default-things.example.com.yaml"
    ]


def test_immutable_changes_replace_the_object(kubernetes: Any) -> None:
    resource_id, outputs = kubernetes.create(CONFIG_MAP, config_map())
    changed = kubernetes.diff(CONFIG_MAP, resource_id, outputs, config_map({"a": "2"}))
    assert list(changed.replaces) == ["data.a"]
    assert changed.deleteBeforeReplace
    moved = kubernetes.diff(CONFIG_MAP, resource_id, outputs, config_map(namespace="tenant-b"))
    assert list(moved.replaces) == ["metadata.namespace"]
    assert not moved.deleteBeforeReplace
    relabelled = kubernetes.diff(CONFIG_MAP, resource_id, outputs, config_map(labels={"app.kubernetes.io/name": "x"}))
    assert list(relabelled.replaces) == []
    assert list(relabelled.detailedDiff) == ["metadata.labels"]
    assert list(relabelled.diffs) == ["metadata"]


def test_config_maps_change_in_place_if_configured(kubernetes_port: int, connect: Any, rendered_folder: Path) -> None:
    provider = connect(kubernetes_port).configure(
        {"renderYamlToDirectory": str(rendered_folder), "enableConfigMapMutable": "true"}
    )
    resource_id, outputs = provider.create(CONFIG_MAP, config_map())
    changed = provider.diff(CONFIG_MAP, resource_id, outputs, config_map({"a": "2"}))
    assert (list(changed.replaces), list(changed.detailedDiff)) == ([], ["data.a"])
    updated = provider.update(CONFIG_MAP, resource_id, outputs, config_map({"a": "2"}))
    assert updated["__fieldManager"] == outputs["__fieldManager"]
    assert 'a: "2"' in (rendered_folder / files(rendered_folder)[0]).read_text()


def test_the_file_of_an_old_name_is_deleted(kubernetes: Any, rendered_folder: Path) -> None:
    old = {"apiVersion": "policy/v1beta1", "kind": "Thing", "metadata": {"name": "t"}}
    kind = "kubernetes:policy/v1:Thing"
    resource_id, outputs = kubernetes.create(kind, old)
    updated = kubernetes.update(kind, resource_id, outputs, old | {"apiVersion": "policy/v1"})
    assert files(rendered_folder) == ["1-manifest/policy_v1-thing-default-t.yaml"]
    assert updated["__initialApiVersion"] == "policy/v1beta1"


def test_as_in_the_real_provider_a_removed_file_is_no_drift(kubernetes: Any, rendered_folder: Path) -> None:
    resource_id, outputs = kubernetes.create(CONFIG_MAP, config_map())
    (rendered_folder / files(rendered_folder)[0]).unlink()
    assert kubernetes.read(CONFIG_MAP, resource_id, outputs, config_map()) == (resource_id, outputs, config_map())


def test_always_render_writes_every_file_again(kubernetes_port: int, connect: Any, rendered_folder: Path) -> None:
    provider = connect(kubernetes_port).configure(
        {"renderYamlToDirectory": str(rendered_folder), "alwaysRender": "true"}
    )
    resource_id, outputs = provider.create(CONFIG_MAP, config_map())
    (file,) = files(rendered_folder)
    (rendered_folder / file).unlink()
    assert provider.diff(CONFIG_MAP, resource_id, outputs, config_map()).changes == provider_pb2.DiffResponse.DIFF_SOME
    provider.update(CONFIG_MAP, resource_id, outputs, config_map())
    assert files(rendered_folder) == [file]


def test_rendered_objects_are_found_by_id_or_by_inputs(kubernetes: Any) -> None:
    resource_id, outputs = kubernetes.create(CONFIG_MAP, config_map())
    read_id, _, inputs = kubernetes.read(CONFIG_MAP, resource_id)
    assert (read_id, inputs) == (resource_id, config_map())
    assert kubernetes.read(CONFIG_MAP, "", inputs=config_map())[0] == resource_id
    assert kubernetes.read(CONFIG_MAP, resource_id, inputs=config_map())[1]["__inputs"] == config_map()
    assert kubernetes.read(CONFIG_MAP, "tenant-a/other", inputs=config_map(name="other"))[0] == ""
    assert kubernetes.read(CONFIG_MAP, "", inputs=config_map(name="other"))[0] == ""
    assert kubernetes.list_changes(CONFIG_MAP, resource_id, outputs, inputs) == []


@pytest.mark.parametrize(
    ("value", "yaml_text"),
    [
        ("plain", "plain"),
        ("true", '"true"'),
        ("12", '"12"'),
        ("1e3", '"1e3"'),
        ("no", '"no"'),
        ("y", '"y"'),
        ("", '""'),
        ("2026-11-21", '"2026-11-21"'),
        ("{}", "'{}'"),
        ("a: b", "'a: b'"),
        ("one\ntwo\n", "|\n    one\n    two"),
        ("one\ntwo", "|-\n    one\n    two"),
        ("wörd", "wörd"),
        ("long " * 40 + "line", "long " * 40 + "line"),
    ],
)
def test_strings_are_quoted_as_the_real_provider_quotes_them(
    kubernetes: Any, rendered_folder: Path, value: str, yaml_text: str
) -> None:
    kubernetes.create(CONFIG_MAP, config_map({"key": value}))
    assert f"data:\n  key: {yaml_text}\nkind" in (rendered_folder / files(rendered_folder)[0]).read_text()


def test_keys_are_ordered_as_the_real_provider_orders_them(kubernetes: Any, rendered_folder: Path) -> None:
    kubernetes.create(CONFIG_MAP, config_map(dict.fromkeys(["b", "a10", "a9", "A", "_z", "a.b", "ab", "a"], "x")))
    text = (rendered_folder / files(rendered_folder)[0]).read_text()
    keys = [line.split(":")[0].strip() for line in text.split("data:\n")[1].split("kind:")[0].splitlines()]
    assert keys == ["_z", "A", "a", "a.b", "a9", "a10", "ab", "b"]


def test_previews_write_nothing(kubernetes: Any, rendered_folder: Path) -> None:
    resource_id, state = kubernetes.create(CONFIG_MAP, config_map(), preview=True)
    assert (resource_id, state) == ("", config_map())
    assert not rendered_folder.exists()


def test_secrets_remain_secret_in_the_state(kubernetes: Any) -> None:
    sealed = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "cGFzcw=="}
    inputs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": sealed}}
    checked = from_struct(kubernetes.check(SECRET, inputs).inputs)
    assert checked["data"] == {"password": sealed}
    _, outputs = kubernetes.create(SECRET, checked)
    assert outputs["data"] == outputs["__inputs"]["data"] == {"password": sealed}


def test_string_data_becomes_data_and_remains_secret(kubernetes: Any) -> None:
    sealed = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "pass"}
    inputs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": sealed}}
    checked = from_struct(kubernetes.check(SECRET, inputs).inputs)
    assert checked["data"]["password"]["value"] == "cGFzcw=="
    _, outputs = kubernetes.create(SECRET, checked)
    assert kubernetes.list_changes(SECRET, "s", outputs, checked) == []


@pytest.mark.parametrize("config", [{}, {"kubeconfig": "/home/me/.kube/config"}], ids=["nothing", "a cluster"])
def test_a_missing_directory_names_the_plugin_to_install(
    kubernetes_port: int, connect: Any, config: Properties
) -> None:
    provider = connect(kubernetes_port)
    response = provider.stub.CheckConfig(provider_pb2.CheckRequest(urn="u", news=to_struct(config)))
    assert [f.property for f in response.failures] == ["renderYamlToDirectory"]
    with pytest.raises(grpc.RpcError) as refused:
        provider.configure(config)
    assert "pulumi plugin install resource kubernetes" in refused.value.details()


@pytest.mark.parametrize(
    "kind",
    ["kubernetes:helm.sh/v3:Release", "kubernetes:core/v1:ConfigMapList", "kubernetes:apps/v1:DeploymentPatch"],
)
def test_unsupported_kinds_are_refused_by_name(kubernetes: Any, kind: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        kubernetes.check(kind, {"metadata": {"name": "x"}})
    assert kind in refused.value.details()


def test_a_generated_name_is_refused(kubernetes: Any) -> None:
    failures = kubernetes.check(ACCOUNT, {"metadata": {"generateName": "x-"}}).failures
    assert [f.property for f in failures] == ["metadata.generateName"]


def test_a_directory_that_cannot_be_written_is_named(kubernetes_port: int, connect: Any, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    provider = connect(kubernetes_port).configure({"renderYamlToDirectory": str(blocked)})
    with pytest.raises(grpc.RpcError) as refused:
        provider.create(CONFIG_MAP, config_map())
    assert str(blocked) in refused.value.details()


def test_a_kubeconfig_beside_the_directory_is_tolerated(kubernetes_port: int, connect: Any) -> None:
    """The SDK fills it in from the program's environment, which an attached server does not share."""
    config = {"renderYamlToDirectory": "rendered", "kubeconfig": "/nonexistent"}
    request = provider_pb2.CheckRequest(urn="u", news=to_struct(config))
    assert not connect(kubernetes_port).stub.CheckConfig(request).failures
    request = provider_pb2.CheckRequest(urn="u", news=to_struct(config | {"cluster": "production"}))
    failures = connect(kubernetes_port).stub.CheckConfig(request).failures
    assert [f.property for f in failures] == ["cluster"]


def test_another_directory_replaces_the_provider(kubernetes_port: int, connect: Any) -> None:
    olds, news = ({"renderYamlToDirectory": name} for name in ("a", "b"))
    request = provider_pb2.DiffRequest(urn="u", olds=to_struct(olds), news=to_struct(news))
    assert list(connect(kubernetes_port).stub.DiffConfig(request).replaces) == ["renderYamlToDirectory"]
