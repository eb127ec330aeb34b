"""Fingerprints of stacks: which files change them, so that a resumed run updates the stack again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lakewright.fleet.fingerprints import compute_inputs_fingerprint
from lakewright.fleet.selection import Selection, select
from lakewright_engine.project.project import PulumiProject

SPEC = "config:\n  lakewright:tenant:\n    name: acme\n    environment: prod\n    extends: base\n"
FILES = {
    "Pulumi.yaml": "name: fleet\nruntime: python\n",
    "Pulumi.acme.yaml": SPEC,
    "__main__.py": "",
    "environments/prod.yaml": "{}\n",
    "defaults/base.yaml": "extends: root\nlabels: {tier: gold}\n",
    "defaults/root.yaml": "owner: data\n",
    "defaults/audited.yaml": "labels: {audited: 'yes'}\n",
}
CHANGES = {
    "Pulumi.yaml": "name: fleet\nruntime: python\nconfig: {}\n",
    "Pulumi.acme.yaml": SPEC + "    owner: sales\n",
    "__main__.py": "import pulumi\n",
    "environments/prod.yaml": "aws: {region: eu-west-1}\n",
    "defaults/base.yaml": "extends: root\nlabels: {tier: silver}\n",
    "defaults/root.yaml": "owner: sales\n",
}


@pytest.fixture
def project(tmp_path: Path) -> PulumiProject:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return PulumiProject.load(tmp_path)


def compute_fingerprint(project: PulumiProject) -> str:
    (stack,) = select(project, Selection())
    return compute_inputs_fingerprint(project, stack)


@pytest.mark.parametrize("name", CHANGES)
def test_each_file_of_a_declaration_changes_it(project: PulumiProject, name: str) -> None:
    before = compute_fingerprint(project)
    file = project.root / name
    modified = file.stat().st_mtime
    file.write_text(CHANGES[name])
    os.utime(file, (modified + 1, modified + 1))

    assert compute_fingerprint(project) != before


def test_a_file_that_a_spec_does_not_extend_changes_nothing(project: PulumiProject) -> None:
    before = compute_fingerprint(project)
    (project.root / "defaults" / "audited.yaml").write_text("labels: {audited: 'no'}\n")

    assert compute_fingerprint(project) == before


def test_a_file_extended_after_the_selection_is_read_again(project: PulumiProject) -> None:
    (stack,) = select(project, Selection())
    before = compute_inputs_fingerprint(project, stack)
    (project.root / "defaults" / "base.yaml").write_text("labels: {tier: silver}\n")

    assert compute_inputs_fingerprint(project, stack) != before
