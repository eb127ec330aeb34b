"""The comment on a pull request: the table, its order, its size, and texts that must stay texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.ci.documents import read_drift, read_preview
from lakewright.ci.errors import DocumentError
from lakewright.ci.preview_comment import LIMIT, MARKER, CiRun, render_comment, render_failure

LAKEKEEPER = "pulumi-python:dynamic/lakekeeper:"


def step(op: str, kind: str, name: str, *properties: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    type_ = kind if ":" in kind else f"{LAKEKEEPER}{kind}"
    lines = [dict(zip(("sign", "path", "text"), line, strict=True)) for line in properties]
    urn = f"urn:pulumi:s::p::{type_}::{name}"
    return {"op": op, "urn": urn, "type": type_, "name": name, "keys": [], "properties": lines, **more}


def stack(name: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    status = "changed" if steps else "unchanged"
    return {"stack": name, "tenant": name, "environment": "production", "status": status, "steps": [*steps], **more}


def comment(*stacks: dict[str, Any], limit: int = LIMIT, facts: CiRun | None = None) -> str:
    return render_comment(read_preview(json.dumps({"version": 1, "stacks": stacks})), facts, limit)


def rows(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| <code>")]


def test_tenants_that_lose_data_come_first() -> None:
    text = comment(
        stack("creates", step("create", "Warehouse", "w")),
        stack("fails", status="failed", error="error: Lakekeeper does not respond"),
        stack("replaces", step("create-replacement", "Role", "r"), step("replace", "Role", "r")),
        stack("drops", step("delete", "Table", "events"), step("update", "Role", "r")),
        stack("calm"),
    )

    assert [row[0] for row in rows(text)] == [
        *("<code>drops</code>", "<code>replaces</code>", "<code>fails</code>", "<code>creates</code>")
    ]
    assert rows(text)[0] == ["<code>drops</code>", "", "1", "", "**1**", "**data loss**: <code>Table events</code>"]
    assert rows(text)[1][3] == "**1**", "a replacement of three steps is one"
    assert text.startswith(f"{MARKER}\n\n### Preview: changes in 3 of 5 tenants, 1 failed")
    assert text.index("[!CAUTION]") < text.index("| tenant")
    assert "1 tenant without changes" in text


def test_note_counts_what_is_deleted() -> None:
    contents = [
        {"name": "Warehouse acme-staging", "summary": "12 tables, 3.4 GiB", "counts": {"table": 12}},
        {"name": "Namespace acme-old", "summary": "nothing"},
    ]
    text = comment(stack("acme", step("delete", "Warehouse", "acme-staging"), deleted_contents=contents))
    assert "deletes 12 tables, 3.4 GiB with <code>Warehouse acme-staging</code>" in rows(text)[0][-1]
    assert "nothing" not in text


def test_details_have_the_changed_properties() -> None:
    change = step("update", "Warehouse", "executions", ("~", "soft_delete_days", "7 => 30"), ("+", "protected", "true"))

    text = comment(stack("acme", change, messages=["warning: the role is new"]))

    details = text[text.index("<details>") : text.index("</details>")]
    assert "```diff\n~ update Warehouse executions\n    ~ soft_delete_days: 7 => 30" in details
    assert "! warning: the role is new" in details


@pytest.mark.parametrize(
    ("kind", "op", "expected"),
    [
        ("kubernetes:core/v1:Namespace", "delete", False),
        ("aws:s3/bucket:Bucket", "replace", True),
        ("Namespace", "delete", True),
        ("Warehouse", "update", False),
        ("Grant", "delete", False),
    ],
)
def test_data_is_lost_with_what_holds_it(kind: str, op: str, *, expected: bool) -> None:
    assert ("data loss" in comment(stack("acme", step(op, kind, "x")))) is expected


def test_dropped_columns_lose_data() -> None:
    dropped = step("update", "Table", "events", ("-", "columns[2].name", '"note"'))
    added = step("update", "Table", "events", ("+", "columns[2].name", '"note"'))

    assert "data loss" in comment(stack("acme", dropped))
    assert "data loss" not in comment(stack("acme", added))


def test_drift_in_a_preview_is_noted() -> None:
    refreshed = step("refresh", "Warehouse", "w", ("~", "name", "a => b"), result="update")
    same = step("refresh", "Role", "r", result="same")

    assert rows(comment(stack("acme", refreshed, same)))[0][5] == "1 changed outside the stack"


def test_retained_objects_are_neither_deleted_nor_lost() -> None:
    text = comment(stack("acme", step("retain", "Warehouse", "executions"), step("delete", "Role", "r")))

    assert rows(text) == [["<code>acme</code>", "", "", "", "**1**", "1 retained"]]
    assert "1 to delete, 1 to retain" in text
    assert "  retain Warehouse executions" in text
    assert "[!CAUTION]" not in text


def test_comment_of_many_tenants_fits() -> None:
    lines = [("~", f"property_{number}", "x" * 150) for number in range(30)]
    stacks = [
        stack(f"tenant-{number}", step("update", "Warehouse", "w", *lines, ("~", "days", f"7 => {number}")))
        for number in range(400)
    ]

    text = comment(*stacks)

    assert len(text.encode()) <= LIMIT
    assert "rows of" in text or len(rows(text)) == 400
    assert "The details of" in text
    assert text.count("<details>") == text.count("</details>")


def test_left_out_details_are_those_of_the_least_danger() -> None:
    many = [("~", f"property_{number}", "x" * 150) for number in range(20)]
    calm = [stack(f"calm-{number}", step("update", "Role", f"role{number}", *many)) for number in range(30)]

    text = comment(*calm, stack("drops", step("delete", "Table", "t")), limit=12_000)

    assert len(text.encode()) <= 12_000
    assert len(rows(text)) == 31, "rows stay as long as they fit"
    assert "- delete Table t  (data loss)" in text
    left_out = int(text.partition("The details of ")[2].partition(" ")[0])
    assert left_out == 31 - text.count("<details>")


def test_one_change_of_a_template_is_one_group() -> None:
    def change(tenant: str) -> dict[str, Any]:
        return step("update", "Warehouse", f"{tenant}-executions", ("~", "owner", f'"a" => "{tenant}-owners"'))

    equal = [stack(f"tenant-{number}", change(f"tenant-{number}")) for number in range(300)]

    text = comment(*equal, stack("other", step("create", "Role", "r")))

    assert [row[0] for row in rows(text)] == [
        "<code>tenant-0</code> and 299 other tenants",
        "<code>other</code>",
    ]
    assert "each of 300 tenants" in text
    assert text.count("<details>") == 2
    assert "# equal changes, shown for tenant-0: tenant-0, tenant-1, " in text


def test_changes_are_in_the_order_of_the_tenants_parts() -> None:
    kinds = ("Grant", "kubernetes:apps/v1:Deployment", "Table", "Warehouse", "aws:s3/bucket:Bucket", "Role")

    text = comment(stack("acme", *(step("create", kind, "x") for kind in kinds)))

    parts = [line for line in text.splitlines() if line.startswith("@@")]
    assert parts == ["@@ storage @@", "@@ catalog @@", "@@ tables @@", "@@ access @@", "@@ compute @@"]


def test_adoption_is_no_creation() -> None:
    bucket = "aws:s3/bucket:Bucket"
    replaced = step("update", bucket, "lake", ("~", "tags.team", '"a" => "b"'))

    text = comment(
        stack("acme", step("adopt", "Project", "acme"), step("adopt", bucket, "lake"), replaced),
        stack("globex", step("create", "Project", "globex")),
    )

    assert rows(text)[0] == ["<code>acme</code>", "", "", "", "", "2 adopted"]
    assert "acme</code>: 2 to adopt" in text
    assert '= adopt Bucket lake\n    ~ tags.team: "a" => "b"' in text
    assert "= adopt Project acme" in text


@pytest.mark.parametrize("limit", [2_000, 3_000, 6_000])
def test_every_limit_holds(limit: int) -> None:
    names = [f"tenant-with-a-long-name-{number}" for number in range(300)]
    changed = [stack(name, step("delete", "Table", "ä" * 80)) for name in names[:150]]

    text = comment(*changed, *(stack(name) for name in names[150:]), limit=limit, facts=CiRun("abc", "https://ci/1"))

    assert len(text.encode()) <= limit
    assert text.startswith(MARKER)
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "@everyone",
        "<img src=x onerror=alert(1)>",
        "</code></details><h1>",
        "`code`",
        "[link](https://evil.example)",
        "# title",
        "a\nb",
        "$math$",
        "\u202eright-to-left",
        "-->",
        "<!-- lakewright",
    ],
)
def test_names_are_text_only(name: str) -> None:
    text = comment(stack(name, step("delete", "Table", name, ("~", name, name))))

    outside = text.split("```")[0].replace("<code>", "").replace("</code>", "").replace(MARKER, "")
    for mark in ("<img", "<h1", "</details", "](", "@e", "`", "\u202e", "-->", "<!--", "$m"):
        assert mark not in outside.replace("<details>", "").replace("<summary>", "").replace("</summary>", "")
    assert len(rows(text)[0]) == 6


def test_fence_is_longer_than_backticks_in_values() -> None:
    text = comment(stack("acme", step("update", "Role", "r", ("~", "name", "```\n</details># title"))))

    assert "````diff\n" in text
    assert "\n````\n" in text
    assert text.rstrip().endswith("</details>")


def test_facts_of_the_run_are_linked() -> None:
    text = comment(stack("acme"), facts=CiRun("0123456789abcdef", "https://ci.example/runs/1?a=1&b=2"))

    assert "Commit <code>0123456789ab</code>" in text
    assert 'href="https&#58;//ci.example/runs/1?a=1&amp;b=2"' in text
    assert "javascript" not in comment(stack("acme"), facts=CiRun("", "javascript:alert(1)"))


def test_update_has_its_own_title() -> None:
    document = {"version": 1, "command": "up", "stacks": [stack("acme", step("create", "Role", "r"))]}

    assert "### Update: changes in 1 of 1 tenant" in render_comment(read_preview(json.dumps(document)))


def test_failed_preview_replaces_the_comment() -> None:
    text = render_failure("expected the JSON, found nothing <b>", CiRun(url="https://ci.example/1"))

    assert text.startswith(MARKER)
    assert "### Preview: failed" in text
    assert "<b>" not in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "found nothing"),
        ("error: no project", "found something else"),
        ('{"version": 2, "stacks": []}', "expected 1, found 2"),
        ('{"version": 1}', "`stacks`: required, but missing"),
        ('{"version": 1, "stacks": [{"tenant": "a"}]}', "`stacks.0.stack`: required"),
        ("[]", "expected the JSON"),
    ],
)
def test_other_input_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read_preview(text)
    with pytest.raises(DocumentError, match=reason):
        read_drift(text)


def test_document_of_a_failed_command_is_an_error() -> None:
    with pytest.raises(DocumentError, match=r"fleet preview` failed: no Pulumi\.yaml found"):
        read_preview('{"version": 1, "exit": 1, "stacks": [], "error": "no Pulumi.yaml found"}')


@pytest.mark.parametrize("limit", [2000, 4000, LIMIT])
def test_many_losses_and_long_names_fit_any_limit(limit: int) -> None:
    losing = [stack(f"tenant-{number:03}-{'x' * 90}", step("delete", "Table", "t" * 900)) for number in range(60)]

    text = comment(*losing, limit=limit)

    assert len(text.encode()) <= limit
    assert "60 of 60 tenants" in text
    assert "Data may be lost" in text


def test_a_huge_name_or_reason_fits() -> None:
    huge = "|" * 70_000

    assert len(comment(stack(huge, step("delete", "Table", huge))).encode()) <= LIMIT
    assert len(render_failure(huge).encode()) <= LIMIT


def test_a_long_error_hides_no_details_of_others() -> None:
    text = comment(
        stack("broken", status="failed", error="x" * 70_000),
        stack("acme", step("create", "Warehouse", "executions")),
    )

    assert "x" * 500 in text
    assert "+ create Warehouse executions" in text


def test_addresses_without_scheme_make_no_link() -> None:
    assert "www." not in render_failure("see WWW.evil.example and www.evil.example").casefold()
