"""Mistakes of specs and environments have their line and column, and name what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright.environment.environment import Environment
from lakewright.environment.stack_file_check import check_stack_file
from lakewright.project_files.servers import derive_servers
from lakewright.spec import SpecError, read_stack_file
from lakewright.spec.stack_conflicts import find_stack_conflicts
from lakewright.validation.positions import find_positions
from lakewright.validation.problems import Problem
from lakewright.validation.yaml_text import load_yaml

SPEC = """\
config:
  lakewright:tenant:
    version: 1
    environment: sandbox
    name: acme
    owner: data@acme.example
    labels: {cost.center: "7", team: a}
    storage:
      main: {backend: aws, bucket: acme-lake, region: eu-west-1}
    warehouses:
      - {name: raw, deletion: protect}
      - name: sales
        key_prefix: sales
"""


def find_mistakes(folder: Path, old: str, new: str) -> list[str]:
    """Return the lines of the message about SPEC with a mistake."""
    assert old in SPEC
    file = folder / "Pulumi.acme.yaml"
    file.write_text(SPEC.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        read_stack_file(file)
    assert file.is_absolute()
    return [line.removeprefix(f"  - {file}:") for line in str(caught.value).splitlines()[1:]]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("key_prefix: sales", "key_prefx: sales", "13:9: warehouses.1.key_prefx: unknown key"),
        ("deletion: protect", "deletion: protct", "11:21: warehouses.0.deletion: expected 'protect'"),
        ("    owner: data@acme.example\n", "", "2:3: owner: required, but missing"),
        ("      - {name: raw, deletion: protect}", "      - {deletion: protect}", "11:9: warehouses.0.name: required"),
        ('cost.center: "7"', 'cost.center: "7", team.x: [1]', "7:32: labels.team.x:"),
        ("version: 1", "version: 2", "3:5: version:"),
    ],
    ids=["unknown key", "choice", "missing", "missing in entry", "key with a period", "value"],
)
def test_mistake_has_line_and_column(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert find_mistakes(tmp_path, old, new)[0].startswith(line)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("key_prefix: sales", "key_prefx: sales", "key_prefix"),
        ("storage:", "storagge:", "storage"),
        ("deletion: protect", "deletion: protct", "protect"),
        ("backend: aws", "backend: awss", "aws"),
        ("name: sales", "name: sales\n        storage: maine", "main"),
        ("key_prefix: sales", "color: blue", ""),
    ],
    ids=["key", "section", "choice", "backend", "storage", "nothing alike"],
)
def test_mistake_names_what_was_meant(tmp_path: Path, old: str, new: str, name: str) -> None:
    message = "\n".join(find_mistakes(tmp_path, old, new))

    assert ("did you mean" in message) is bool(name)
    assert not name or f"did you mean `{name}`?" in message


def test_mistakes_are_in_the_order_of_lines(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.acme.yaml"
    file.write_text(
        SPEC.replace("name: raw", "name: raw!").replace("version: 1", "version: 3").replace("owner", "ownr")
    )
    with pytest.raises(SpecError) as caught:
        read_stack_file(file)

    lines = [problem.position.line for problem in caught.value.problems if problem.position]
    assert lines == sorted(lines)
    assert len(lines) == len(caught.value.problems) == 4


def test_syntax_error_has_line_and_column(tmp_path: Path) -> None:
    assert find_mistakes(tmp_path, "{name: raw, deletion: protect}", "{name: raw, deletion: [}")[0].startswith(
        "11:32: expected YAML: "
    )


@pytest.mark.parametrize(
    ("old", "new", "second", "first"),
    [
        ("owner: data@acme.example", "owner: a\n    owner: b", "7:5", "6:5"),
        ("{name: raw,", "{name: raw, deletion: purge,", "11:38", "11:21"),
        ("labels: {", "labels: {<<: {a: b}, <<: {c: d}, ", "7:26", "7:14"),
        ("labels: {", "labels: {7: a, '7': b, ", "7:20", "7:14"),
    ],
    ids=["block", "flow", "merge", "number and text"],
)
def test_repeated_key_is_refused(tmp_path: Path, old: str, new: str, second: str, first: str) -> None:
    """PyYAML would keep the last value. The Pulumi CLI refuses the same keys."""
    (line,) = find_mistakes(tmp_path, old, new)

    assert line.startswith(f"{second}: expected YAML: key ")
    assert f"is set in {tmp_path}/Pulumi.acme.yaml:{first}, and set again: remove or rename one of them" in line


def test_merged_key_may_be_set_again(tmp_path: Path) -> None:
    """A mapping that another mapping merges before it is read itself: both have the override."""
    file = tmp_path / "Pulumi.acme.yaml"
    file.write_text(
        "x:\n  y: {team: &team {<<: {a: 1, b: 1}, a: 2}}\nz: {<<: *team, b: 3}\n"
        + SPEC.replace("labels: {", "labels: {<<: {team: merged, tier: gold}, ")
    )

    assert read_stack_file(file).labels == {"cost.center": "7", "team": "a", "tier": "gold"}
    assert load_yaml(file.read_text())["x"]["y"]["team"] == {"a": 2, "b": 1}
    assert load_yaml(file.read_text())["z"] == {"a": 2, "b": 3}


def test_environment_with_a_repeated_key_is_refused(tmp_path: Path) -> None:
    environment = tmp_path / "prod.yaml"
    environment.write_text("lakekeeper:\n  endpoint: http://127.0.0.1:1\n  endpoint: http://127.0.0.1:2\n")

    with pytest.raises(SpecError, match=r"prod.yaml:3:3: .* key 'endpoint' is set in .*prod.yaml:2:3, and set again"):
        Environment.load(environment, {})


def test_mistake_of_the_environment_names_its_file(tmp_path: Path) -> None:
    """The environment's own position is kept in the report about the stack file."""
    environment = tmp_path / "environments" / "sandbox.yaml"
    environment.parent.mkdir()
    environment.write_text("# shared\nlakekeeper:\n  endpoints: http://127.0.0.1:1\n")
    file = tmp_path / "Pulumi.acme.yaml"
    file.write_text(SPEC)

    with pytest.raises(SpecError) as caught:
        check_stack_file(file, tmp_path, {})
    with pytest.raises(SpecError) as alone:
        Environment.load(environment, {})

    for error in (caught.value, alone.value):
        assert f"  - {environment}:3:3: lakekeeper.endpoints: unknown key" in str(error)
        assert "did you mean `endpoint`?" in str(error)


def test_unknown_environment_suggests_a_file(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "sandbox.yaml").write_text("lakekeeper: {endpoint: 'http://127.0.0.1:1'}")

    with pytest.raises(SpecError, match="did you mean `sandbox`"):
        Environment.load(tmp_path / "environments" / "sandbx.yaml", {})


def test_conflict_with_another_file_has_its_position(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.acme.yaml"
    file.write_text(SPEC)
    spec = read_stack_file(file)
    conflicts = find_stack_conflicts(spec, {"Pulumi.twin.yaml": spec}, lambda name: derive_servers(name, {}, tmp_path))

    problems = find_positions([Problem(*conflict) for conflict in conflicts], file, "config", "lakewright:tenant")

    assert "name" in [problem.path for problem in problems]
    assert {str(problem.position) for problem in problems if problem.path == "name"} == {f"{file}:5:5"}


def test_paths_in_words_have_no_position(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.acme.yaml"
    file.write_text(SPEC)

    (problem,) = find_positions([Problem("environment prod: aws.region", "required")], file)

    assert problem.position is None
