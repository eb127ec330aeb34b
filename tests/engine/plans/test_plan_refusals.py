"""A kept plan is refused, before anything is touched, where something moved since it was made. It holds no secret."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from lakewright_engine.model.errors import EngineError, PlanError, SecretsError
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.plans.deleted_contents import CountContents, DeletedContents
from lakewright_engine.plans.plan_file import SIGNATURE_KEY, read_plan, write_plan
from programs.options import HEADER
from stackrunner import Stack

PROGRAM = """
secret = pulumi.Config().require_secret("token")
a = File("a", "a.json", f"content {step}", token=secret)
File("b", "b.json", "b", token={"deep": [pulumi.Output.secret("CANARY-deep")]})
pulumi.export("nested", {"token": secret})
"""
CANARY = "CANARY-token"


@pytest.fixture(scope="module")
def stack_with_plan(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """Return a deployed stack with two files and a plan of the next step, which the tests do not apply."""
    stack = Stack(tmp_path_factory.mktemp("planned"), HEADER + PROGRAM)
    stack.set_config("conf:token", CANARY, secret=True)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    assert stack.run("preview", env={"STEP": "2"}, save_plan=stack.folder / "plan.json").exit == 0
    return stack


@pytest.fixture
def plan(stack_with_plan: Stack) -> Path:
    return stack_with_plan.folder / "plan.json"


def refusal(stack: Stack, plan: Path, **environment: str) -> str:
    """Return the error of an update by a plan, which must not touch anything."""
    before = stack.deployment()
    with pytest.raises(EngineError) as refused:
        stack.run("up", env={"STEP": "2", **environment}, plan=plan)
    assert stack.deployment() == before
    return str(refused.value)


def test_plan_holds_no_secret_in_clear(plan: Path) -> None:
    text = plan.read_text()
    assert "CANARY" not in text
    assert text.count("ciphertext") >= 3


def test_changed_settings_are_named(stack_with_plan: Stack, plan: Path) -> None:
    file = stack_with_plan.program_dir / "Pulumi.dev.yaml"
    text = file.read_text()
    file.write_text(f"# only a comment\n{text}\n  conf:other: x\n")
    message = refusal(stack_with_plan, plan)
    file.write_text(text)
    assert "changed since the plan was made: Pulumi.dev.yaml. Nothing was changed" in message


def test_changed_program_is_named(stack_with_plan: Stack, plan: Path) -> None:
    (stack_with_plan.program_dir / "parts").mkdir()
    (stack_with_plan.program_dir / "parts" / "new.py").write_text("x = 1\n")
    message = refusal(stack_with_plan, plan)
    (stack_with_plan.program_dir / "parts" / "new.py").unlink()
    assert "changed since the plan was made: parts/*.py. " in message


def test_plan_of_another_stack_is_refused(stack_with_plan: Stack, plan: Path, tmp_path: Path) -> None:
    other = Stack(tmp_path, HEADER + PROGRAM, name="prod")
    assert "is a plan of stack 'dev', not of stack 'prod'" in refusal(other, plan)
    project = Stack(tmp_path / "other", HEADER + PROGRAM, project="billing")
    assert "is a plan of project 'conf', not of project 'billing'" in refusal(project, plan)


def test_tampered_plan_is_refused(stack_with_plan: Stack, plan: Path, tmp_path: Path) -> None:
    """A forger who recomputes the hash cannot sign."""
    body = json.loads(plan.read_text())
    body["steps"] = [step for step in body["steps"] if not step["urn"].endswith("::a")]
    forged = write_plan(tmp_path / "forged.json", body, b"no key of the stack")
    assert "the signature is wrong" in refusal(stack_with_plan, forged.file)


def test_wrong_passphrase_is_refused(stack_with_plan: Stack, plan: Path) -> None:
    with pytest.raises(SecretsError, match="incorrect passphrase"):
        stack_with_plan.run("up", env={"STEP": "2", "PULUMI_CONFIG_PASSPHRASE": "wrong"}, plan=plan)


def test_plan_of_another_engine_is_refused(stack_with_plan: Stack, plan: Path, tmp_path: Path) -> None:
    body = json.loads(plan.read_text())
    file = tmp_path / "plan.json"
    write_plan(file, {**body, "engine": {"name": "pulumi", "version": "3.260.0"}}, b"key")
    assert "was made by the engine `pulumi`, not by `embedded`. Use --engine pulumi" in refusal(stack_with_plan, file)
    write_plan(file, {**body, "engine": {"name": "embedded", "version": "0.0.1"}}, b"key")
    assert "was made by version 0.0.1 of the engine `embedded`" in refusal(stack_with_plan, file)


def test_changed_object_is_named_with_its_property(stack_with_plan: Stack, plan: Path) -> None:
    """Only objects that the plan changes are compared, so not b."""
    a, b = stack_with_plan.store / "a.json", stack_with_plan.store / "b.json"
    files = {file: file.read_text() for file in (a, b)}
    b.write_text(json.dumps({**json.loads(files[b]), "content": "changed"}))
    a.write_text(json.dumps({**json.loads(files[a]), "content": "changed"}))
    done = stack_with_plan.run("up", env={"STEP": "2"}, plan=plan)
    a.unlink()
    without_object = stack_with_plan.run("up", env={"STEP": "2"}, plan=plan)
    for file, text in files.items():
        file.write_text(text)
    assert (done.exit, done.provider_calls, without_object.exit, without_object.provider_calls) == (1, [], 1, [])
    assert 'store:File \'a\': property content: was "content 1", is "changed"' in done.messages[0]
    assert "'b'" not in done.messages[0]
    assert "store:File 'a' no longer exists" in without_object.messages[0]


def test_existing_file_of_another_kind_is_kept(stack_with_plan: Stack) -> None:
    file = stack_with_plan.program_dir / "Pulumi.yaml"
    text = file.read_text()
    with pytest.raises(PlanError, match="exists and is not a plan"):
        stack_with_plan.run("preview", env={"STEP": "2"}, save_plan=file)
    assert file.read_text() == text


def test_failed_preview_saves_no_plan(stack_with_plan: Stack, tmp_path: Path) -> None:
    done = stack_with_plan.run("preview", env={"STEP": "no number"}, save_plan=tmp_path / "plan.json")
    assert done.exit == 1
    assert "warning: no plan was saved, because the preview failed" in done.messages
    assert not (tmp_path / "plan.json").exists()


def test_plan_of_a_refresh_covers_every_object(tmp_path: Path) -> None:
    """Drift after a preview with --refresh is found in an object that the plan does not change, too."""
    stack, plan = Stack(tmp_path, HEADER + PROGRAM), tmp_path / "plan.json"
    stack.set_config("conf:token", CANARY, secret=True)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    b = stack.store / "b.json"
    drifted = json.dumps({**json.loads(b.read_text()), "content": "drift"})
    b.write_text(drifted)
    planned = stack.run("preview", "--refresh", env={"STEP": "1"}, save_plan=plan)
    b.write_text(drifted.replace("drift", "more drift"))
    refused = stack.run("up", env={"STEP": "1"}, plan=plan)
    b.write_text(drifted)
    done = stack.run("up", env={"STEP": "1"}, plan=plan)
    with pytest.raises(PlanError, match="state of stack 'dev' has changed since the plan was made"):
        stack.run("up", env={"STEP": "1"}, plan=plan)
    assert planned.changes["update"] == 1
    assert 'store:File \'b\': property content: was "drift", is "more drift"' in refused.messages[0]
    assert done.exit == 0, done.messages
    assert done.files["b.json"]["content"] == "b"


def test_limited_plan_ignores_drift_of_other_objects(tmp_path: Path) -> None:
    """A plan of a refresh with targets holds the targets only. Drift elsewhere existed before, and remains."""
    stack, plan = Stack(tmp_path, HEADER + PROGRAM), tmp_path / "plan.json"
    stack.set_config("conf:token", CANARY, secret=True)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    for name in ("a", "b"):
        file = stack.store / f"{name}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "content": "drift"}))

    planned = stack.run("preview", "--refresh", "--target", "**::b", env={"STEP": "1"}, save_plan=plan)
    done = stack.run("up", env={"STEP": "1"}, plan=plan)

    assert planned.changes["update"] == 1
    assert done.exit == 0, done.messages
    assert (done.files["a.json"]["content"], done.files["b.json"]["content"]) == ("drift", "b")


def counter(**contents: object) -> CountContents:
    """Return a function that finds the same contents in every deleted object."""

    def count(states: Sequence[ResourceState]) -> list[DeletedContents]:
        return [DeletedContents(state.urn, state.id, state.type, **contents) for state in states]  # type: ignore[arg-type]

    return count


@pytest.fixture
def emptied(tmp_path: Path) -> Stack:
    """Return a deployed stack whose program no longer declares its file."""
    stack = Stack(tmp_path, HEADER + 'File("b", "b.json", "b")')
    stack.environment["STEP"] = "1"
    assert stack.run("up").exit == 0
    stack.write_program(HEADER)
    return stack


@pytest.mark.parametrize(
    ("planned", "current", "reason"),
    [
        ({}, {"counts": {"table": 1}, "bytes": 3200}, "planned to delete nothing, now contains 1 table, 3.1 KiB"),
        ({"unknown": "no rights"}, {}, "the contents could not be counted when the plan was made: no rights"),
        ({}, {"unknown": "no rights"}, "planned to delete nothing, and the contents cannot be counted now: no rights"),
        (
            {"counts": {"table": 12}, "bytes": 5 << 30, "fingerprint": "a"},
            {"counts": {"table": 12}, "bytes": 5 << 30, "fingerprint": "b"},
            "planned to delete 12 tables, 5.0 GiB, now contains other data of the same number and size",
        ),
    ],
)
def test_plan_compares_the_contents_that_it_deletes(
    emptied: Stack, planned: dict[str, object], current: dict[str, object], reason: str
) -> None:
    plan, before = emptied.folder / "contents.json", emptied.deployment()
    assert emptied.run("preview", save_plan=plan, count_contents=counter(**planned)).exit == 0
    with pytest.raises(PlanError, match="Nothing was changed") as changed:
        emptied.run("up", plan=plan, count_contents=counter(**current))
    with pytest.raises(PlanError, match="the contents that it deletes cannot be compared here"):
        emptied.run("up", plan=plan)
    assert f"File 'b': {reason}" in str(changed.value)
    assert emptied.deployment() == before


@pytest.mark.parametrize(("fingerprint", "is_followed"), [("a", True), ("b", False)])
def test_plan_allows_contents_that_a_service_adds(emptied: Stack, fingerprint: str, *, is_followed: bool) -> None:
    """Access logs arrive after the plan was made. The fingerprint is that of all other objects."""
    plan, planned = emptied.folder / "contents.json", counter(bytes=1, fingerprint="a", is_growing=True)
    assert emptied.run("preview", save_plan=plan, count_contents=planned).exit == 0
    current = counter(bytes=2, fingerprint=fingerprint, is_growing=True)

    if is_followed:
        assert emptied.run("up", plan=plan, count_contents=current).exit == 0
    else:
        with pytest.raises(PlanError, match="planned to delete 1 B, now contains 2 B"):
            emptied.run("up", plan=plan, count_contents=current)


def test_plan_without_recorded_contents_deletes_nothing(emptied: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version wrote such plans."""
    plan = emptied.folder / "old.json"
    emptied.run("preview", save_plan=plan, count_contents=counter())
    body = {key: value for key, value in read_plan(plan).body.items() if key not in ("contents", "sha256", "signature")}
    for name, value in emptied.environment.items():
        monkeypatch.setenv(name, value)
    secrets = emptied.project.secrets(emptied.name)
    secrets.unlock()
    write_plan(plan, body, secrets.derive_key(SIGNATURE_KEY))
    with pytest.raises(PlanError, match="made by an earlier version, which did not record their contents"):
        emptied.run("up", plan=plan, count_contents=counter())
    assert "b.json" in emptied.files()
