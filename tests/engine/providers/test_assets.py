"""Assets and archives: hashes as by the CLI, paths relative to the program, contents restored after a read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.assets import add_hashes, restore_contents
from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.gotar import write_tar
from lakewright_engine.model.resources import Asset, SecretValue
from lakewright_engine.model.signatures import ARCHIVE, ASSET, SIGNATURE
from lakewright_engine.state.outputs import stack_outputs
from stackrunner import PASSPHRASE, Stack
from vaultplugin import install


@pytest.mark.parametrize(
    ("names", "digest"),
    [
        (["a.txt"], "75267c44c4b794abcce7f9e76efc0b1e20ec525625c1270915b9554c7efc8718"),
        (["a", "b/c", "dir/with space"], "7719854267e89461eb239ed3ceed8ee37f69b4d1b13d0651c7572f40980238c1"),
        (["d/" * 60 + "file"], "2f9da9da8ee284119df052bb0f7ebc4a62a2d4f6a1404904959ddc4a1996ee5a"),
        (["x" * 120], "9c2ec500cab2000168351cd6087a19a03bed9f722a0515660e6df6c7132f761f"),
        (["ünïcode/ä.txt"], "d5c1cc9c88bd2e380620be7bf122af5e42b0afdcd3e1d98c16d566cc7e00deaf"),
        (["y" * 99 + "/" + "z" * 101], "27021645ed3c8a0406b9ddd058f57834e3e939e201b51681edbf76a5b2204b36"),
        (["ü" * 80], "3fe66cef869396eca4d8f334973a8eb6a1af9d6e7af04b004de30a8958fa76f9"),
    ],
    ids=["plain", "several", "split", "long", "not ASCII", "not to be split", "nothing in ASCII"],
)
def test_tar_matches_go(names: list[str], digest: str) -> None:
    """The digests come from streams that Go's archive/tar wrote."""
    digest_of_tar = hashlib.sha256()
    write_tar([(name, f"{name}content".encode()) for name in names], digest_of_tar.update)
    assert digest_of_tar.hexdigest() == digest


def asset(**contents: Any) -> Asset:
    return Asset({SIGNATURE: ASSET, **contents})


def archive(**contents: Any) -> Asset:
    return Asset({SIGNATURE: ARCHIVE, **contents})


def tar_digest(*members: tuple[str, bytes]) -> str:
    sha256 = hashlib.sha256()
    write_tar(members, sha256.update)
    return sha256.hexdigest()


def read_hash(value: Asset, folder: Path) -> str:
    secret = add_hashes({"x": SecretValue([value])}, folder)["x"]
    assert isinstance(secret, SecretValue)
    assert isinstance(secret.value, list)
    assert isinstance(secret.value[0], Asset)
    return secret.value[0].wire["hash"]


def test_assets_are_relative_to_the_folder(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / ".pulumi").mkdir()
    (tree / ".pulumi" / "skipped").write_text("s")
    (tree / "inner" / "b.txt").write_text("b")
    (tree / "inner-2").write_text("2")
    (tree / "link").symlink_to(tree / "inner")
    (tmp_path / "policy.txt").write_text("policy")
    assert read_hash(asset(path="policy.txt"), tmp_path) == hashlib.sha256(b"policy").hexdigest()
    assert read_hash(asset(uri=(tmp_path / "policy.txt").as_uri()), tmp_path) == hashlib.sha256(b"policy").hexdigest()
    members = (("inner/b.txt", b"b"), ("inner-2", b"2"))
    assert read_hash(archive(path="tree"), tmp_path) == tar_digest(*members)
    nested = archive(assets={"t": {SIGNATURE: ARCHIVE, "path": "tree"}, "a": {SIGNATURE: ASSET, "text": "a"}})
    assert read_hash(nested, tmp_path) == tar_digest(("a", b"a"), *((f"t/{name}", data) for name, data in members))


def test_archive_file_is_hashed_unchanged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("inside.txt", "i")
    assert read_hash(archive(path="a.zip"), tmp_path) == hashlib.sha256((tmp_path / "a.zip").read_bytes()).hexdigest()
    nested = archive(assets={"z": {SIGNATURE: ARCHIVE, "path": "a.zip"}})
    assert read_hash(nested, tmp_path) == tar_digest(("z/inside.txt", b"i"))


def test_missing_asset_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=rf"policy\.txt.*relative paths start at {tmp_path}"):
        add_hashes({"x": asset(path="policy.txt")}, tmp_path)


def test_asset_contents_left_out_by_provider_are_restored() -> None:
    contents = {"policy": asset(text="long", hash="1"), "other": asset(text="o", hash="2")}
    restored = restore_contents(
        {"policy": asset(hash="1"), "strange": asset(hash="3"), "n": 1}, {"deep": list(contents.values())}
    )
    assert restored == {"policy": contents["policy"], "strange": asset(hash="3"), "n": 1}


PROGRAM = """
import pulumi

class Thing(pulumi.CustomResource):
    def __init__(self, name, props):
        super().__init__("vault:index:Thing", name, props)

Thing("thing", {"name": "object", "policy": pulumi.FileAsset("policy.txt"), "tree": pulumi.FileArchive("tree")})
"""


def test_assets_of_program_in_subfolder(tmp_path: Path) -> None:
    stack = Stack(tmp_path, "")
    stack.environment |= {"PATH": install(tmp_path / "bin"), "VAULT": str(stack.store)}
    program = stack.program_dir / "program"
    (program / "tree").mkdir(parents=True)
    (program / "tree" / "a.txt").write_text("a")
    (program / "policy.txt").write_text("policy")
    (program / "__main__.py").write_text(PROGRAM)
    (stack.program_dir / "Pulumi.yaml").write_text("name: conf\nruntime: python\nmain: program/\n")
    outcome = stack.run("up")
    assert outcome.exit == 0, outcome.messages
    assert {step["op"] for step in stack.run("up").steps} == {"same"}
    assert stack.run("refresh").exit == 0
    policy = stack.resource("thing").inputs["policy"]
    assert policy.wire == {SIGNATURE: ASSET, "path": "policy.txt", "hash": hashlib.sha256(b"policy").hexdigest()}
    assert stack.resource("thing").outputs["tree"].wire["path"] == "tree"


OUTPUTS = """
from pulumi import AssetArchive, FileArchive, FileAsset, Output, StringAsset, export
export("file", FileAsset("policy.txt"))
export("archive", FileArchive("tree"))
export("assets", AssetArchive({"inner": StringAsset("inside"), "tree": FileArchive("tree")}))
export("nested", [StringAsset("hello"), Output.secret({"asset": StringAsset("CANARY")})])
export("secret", Output.secret(StringAsset("CANARY")))
"""


@pytest.mark.parametrize("engine", ["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def test_outputs_have_the_contents_of_assets(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Stack(tmp_path, OUTPUTS)
    (stack.program_dir / "policy.txt").write_text("policy")
    (stack.program_dir / "tree").mkdir()
    (stack.program_dir / "tree" / "a").write_text("a")

    if engine == "embedded":
        outputs = stack.run("up").outputs
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        decrypted = stack_outputs(stack.backend, stack.project_name, stack.name, show_secrets=True)
    else:
        stack.cli("up")
        outputs, decrypted = stack.read_cli_outputs(), stack.read_cli_outputs("--show-secrets")

    tree = {SIGNATURE: ARCHIVE, "path": "tree", "hash": tar_digest(("a", b"a"))}
    archive_hash = tar_digest(("inner", b"inside"), ("tree/a", b"a"))
    plain = {
        "file": {SIGNATURE: ASSET, "path": "policy.txt", "hash": hashlib.sha256(b"policy").hexdigest()},
        "archive": tree,
        "assets": {SIGNATURE: ARCHIVE, "assets": {"inner": text_asset("inside"), "tree": tree}, "hash": archive_hash},
    }
    assert outputs == {**plain, "nested": [text_asset("hello"), "[secret]"], "secret": "[secret]"}
    canary = text_asset("CANARY")
    assert json.loads(json.dumps(decrypted)) == {
        **plain,
        "nested": [text_asset("hello"), {"asset": canary}],
        "secret": canary,
    }


def text_asset(text: str) -> dict[str, str]:
    return {SIGNATURE: ASSET, "text": text, "hash": hashlib.sha256(text.encode()).hexdigest()}
