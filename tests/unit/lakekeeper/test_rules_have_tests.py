"""Tests for each rule of the server's API: every named test exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[2]
PROVIDER, SERVER, UNIT = "integration/provider/test_", "integration/lakekeeper/test_", "unit/lakekeeper/test_"

UPDATES = {
    "a profile sent without its credential deletes that": [
        f"{SERVER}warehouse_rules::test_storage_without_credential_removes_the_old_one",
        f"{PROVIDER}server_rules::test_changed_profile_includes_its_credential",
    ],
    "a key is rotated by the credential call": [f"{PROVIDER}server_rules::test_changed_key_uses_the_credential_call"],
    "a credential of null, or none, removes the old one": [
        f"{SERVER}warehouse_rules::test_a_null_or_missing_credential_removes_the_old_one",
        f"{PROVIDER}server_rules::test_undeclared_credential_is_removed",
    ],
    "bucket, prefix and region never change, a region beside an endpoint does": [
        f"{SERVER}warehouse_rules::test_fields_that_never_change",
        f"{PROVIDER}server_rules::test_storage_properties_that_replace",
        f"{PROVIDER}server_rules::test_before_0_12_no_region_changes_in_place",
    ],
    "the type of storage never changes": [f"{UNIT}storage_requests::test_another_kind_of_storage_replaces"],
    "what of ADLS and GCS never changes": [f"{UNIT}storage_requests::test_replaced_and_updated_storage_properties"],
    "everything else changes in place": [
        f"{SERVER}warehouse_rules::test_fields_that_change_in_place",
        f"{PROVIDER}warehouse::test_storage_settings_change_in_place",
    ],
    "a layout is for new objects": [f"{SERVER}warehouse_rules::test_another_layout_is_for_new_tables_alone"],
    "storage is tried before it is compared": [
        f"{SERVER}warehouse_rules::test_storage_is_validated_before_fixed_fields_are_compared"
    ],
    "the project never changes": [f"{PROVIDER}server_rules::test_another_project_replaces"],
    "the name does": [f"{PROVIDER}server_rules::test_name_and_its_case_change_in_place"],
}

DELETION = {
    "missing, managed, tasks, protection, contents: in this order; force overrides protection alone": [
        f"{SERVER}warehouse_rules::test_deletion_blockers_in_order_and_force_for_protection",
        f"{PROVIDER}error_responses::test_reasons_against_deleting_a_warehouse",
        f"{PROVIDER}server_rules::test_protection_is_never_overridden_by_force",
    ],
    "one that is missing": [f"{PROVIDER}error_responses::test_deleting_a_missing_warehouse_is_no_error"],
    "a purge in the queue": [f"{SERVER}warehouse_rules::test_a_purge_that_is_not_done_keeps_a_warehouse"],
    "none is deleted with its contents": [
        f"{SERVER}warehouse_rules::test_a_warehouse_with_contents_is_never_deleted",
        f"{PROVIDER}error_responses::test_warehouse_with_a_namespace_is_not_deleted",
        f"{PROVIDER}deletion::test_purge_leaves_no_object_in_catalog_or_storage",
    ],
    "data outside of purged tables stays": [
        f"{SERVER}warehouse_rules::test_a_purge_keeps_objects_outside_of_the_table"
    ],
    "a managed one is changed by instance admins alone": [
        f"{SERVER}warehouse_rules::test_only_instance_admins_change_a_warehouse"
    ],
}

PERMISSIONS = {
    "there under OpenFGA alone": [
        f"{SERVER}permissions_api::test_allow_all_has_no_permissions_api",
        f"{PROVIDER}identity_versions::test_server_without_grants_differs_from_empty_grants",
    ],
    "the path and relations of each kind of object": [
        f"{SERVER}permissions_api::test_every_relation_is_written_read_and_deleted",
        f"{SERVER}permissions_api::test_a_relation_that_the_kind_lacks",
        f"{UNIT}grants::test_path_of_an_objects_tuples",
        f"{PROVIDER}grant::test_grant_is_created_read_and_deleted",
    ],
    "direct ones, all at once, filtered by relation": [
        f"{SERVER}permissions_api::test_only_direct_assignments_are_listed_by_relation"
    ],
    "a project's answer names it": [f"{SERVER}permissions_api::test_project_assignments_by_header_and_by_path"],
    "a hundred in one call": [
        f"{SERVER}permissions_api::test_a_batch_has_a_hundred_tuples_at_most",
        f"{PROVIDER}grants::test_more_grants_than_one_call_takes",
    ],
    "one of user and role": [f"{SERVER}permissions_api::test_an_assignment_names_a_user_or_a_role"],
    "what is there, or is not, rejects the batch": [
        f"{SERVER}permissions_api::test_an_existing_tuple_rejects_the_whole_batch",
        f"{SERVER}permissions_api::test_a_missing_tuple_rejects_the_whole_batch",
        f"{UNIT}grants::test_rejected_batch_is_read_and_sent_without_duplicates",
        f"{PROVIDER}openfga::test_concurrent_change_is_read_again",
    ],
    "who may not grant is answered 401": [
        f"{SERVER}permissions_api::test_assigning_without_the_right_is_unauthorized",
        f"{PROVIDER}openfga::test_missing_grant_right_is_named",
    ],
    "no role to itself, nobody without a token, no role that is assumed": [
        f"{SERVER}permissions_api::test_a_role_is_not_assigned_to_itself",
        f"{SERVER}permissions_api::test_nobody_grants_without_a_token",
        f"{SERVER}permissions_api::test_nobody_grants_below_a_warehouse_in_an_assumed_role",
        f"{PROVIDER}openfga::test_role_cannot_be_granted_to_itself",
    ],
    "creators own": [
        f"{SERVER}rights_of_people::test_the_creator_owns_an_object",
        f"{PROVIDER}openfga::test_creator_stays_owner_and_is_reported",
    ],
    "managed access": [
        f"{SERVER}permissions_api::test_managed_access_is_idempotent_and_inherited",
        f"{PROVIDER}rights::test_managed_access_of_a_warehouse",
        f"{PROVIDER}rights::test_managed_access_of_a_namespace",
    ],
    "what one may do, asked": [
        f"{SERVER}permissions_api::test_the_authorizer_s_own_actions",
        f"{SERVER}permissions_api::test_checks_of_own_rights_and_of_another_users",
    ],
    "admins have no access inside, operators all": [
        f"{SERVER}rights::test_an_admin_needs_a_grant_inside_a_project",
        f"{SERVER}rights::test_an_operator_may_do_everything",
    ],
}

ERRORS = {
    "each type, by situation": [
        f"{UNIT}error_types::test_refusal_is_final_and_of_its_class",
        f"{UNIT}error_types::test_temporary_error_is_retried_and_then_reported",
    ],
    "a rename onto a taken name": [f"{PROVIDER}server_rules::test_rename_onto_a_taken_name_is_refused_early"],
    "an overlap": [f"{PROVIDER}error_responses::test_overlap_with_another_warehouse_is_reported"],
    "what is hidden is missing, what is seen is forbidden": [
        f"{SERVER}rights::test_an_invisible_warehouse_is_missing",
        f"{SERVER}rights::test_an_action_on_a_visible_object_is_forbidden_by_kind",
        f"{SERVER}rights::test_projects_server_and_users_are_refused_before_missing",
        f"{PROVIDER}rights::test_project_403_means_gone_to_who_sees_every_project",
    ],
    "pages": [
        f"{UNIT}paging::test_page_without_a_token_is_the_last_one",
        f"{UNIT}paging::test_short_or_empty_page_with_a_token_is_not_the_end",
        f"{UNIT}paging::test_unknown_page_token_is_an_error",
        f"{SERVER}tables::test_listings_come_in_pages",
    ],
}

VERSIONS = {
    row: [f"{side}server_versions::test_row_{name}" for side, name in tests]
    for row, tests in {
        "default project": [
            (SERVER, "default_project_calls_are_gone"),
            (PROVIDER, "default_project_calls_are_not_needed"),
        ],
        "answer of a creation": [(SERVER, "create_warehouse_answers_all_of_it")],
        "answers of changes": [(SERVER, "changes_answer_the_warehouse")],
        "id of a warehouse": [
            (SERVER, "warehouse_id_key_and_its_neighbours"),
            (PROVIDER, "warehouse_id_key_and_s3_key_names"),
        ],
        "path to undrop": [(SERVER, "undrop_path_has_a_dash"), (PROVIDER, "undrop_path_and_default_layout")],
        "names of S3 keys": [(SERVER, "s3_key_names"), (SERVER, "s3_key_names_of_cloudflare_have_never_had_a_prefix")],
        "fields of S3": [(SERVER, "s3_fields"), (PROVIDER, "fields_that_would_be_dropped_are_refused")],
        "region": [(SERVER, "region_update"), (PROVIDER, "region_update")],
        "delegation": [(SERVER, "default_delegation_is_vending"), (SERVER, "default_delegation_signer_keys")],
        "task queues": [(SERVER, "task_queue_names"), (PROVIDER, "task_queue_names")],
        "actions": [(SERVER, "actions_are_objects")],
        "type of a missing warehouse": [
            (SERVER, "not_found_type_of_warehouses"),
            (PROVIDER, "not_found_type_of_warehouses"),
        ],
        "type of a name clash": [(SERVER, "name_clash_type"), (PROVIDER, "name_clash_type")],
        "idempotency": [(SERVER, "idempotency")],
        "health": [(SERVER, "health_of_an_unhealthy_server")],
        "info": [(SERVER, "info_keys"), (PROVIDER, "info_keys")],
        "default layout": [(SERVER, "default_layout"), (PROVIDER, "undrop_path_and_default_layout")],
        "dry runs, moves of namespaces": [(SERVER, "dry_runs_and_namespace_move"), (PROVIDER, "dry_runs")],
        "grants": [(PROVIDER, "grants")],
        "roles": [(PROVIDER, "role_identifiers")],
    }.items()
} | {
    "paths of permissions": [f"{PROVIDER}identity_versions::test_tuples_are_the_same_in_every_version"],
    "members and identifiers of roles": [
        f"{SERVER}authz_versions::test_members_came_with_0_13_and_before_there_were_assignees",
        f"{SERVER}authz_versions::test_a_role_s_identifiers_came_with_0_12",
        f"{PROVIDER}identity_versions::test_members_are_tuples_before_the_members_call",
    ],
    "relations": [
        f"{SERVER}authz_versions::test_relations_and_actions_for_tags_came_with_0_14",
        f"{UNIT}grants::test_relations_are_known_from_their_version_on",
        f"{PROVIDER}identity_versions::test_newer_privilege_is_refused_by_name",
    ],
    "tags and generic tables": [
        f"{SERVER}generic_tables::test_generic_tables_came_with_0_13_and_tags_with_0_14",
        f"{PROVIDER}identity_versions::test_grant_on_an_unsupported_kind_names_the_version",
    ],
    "older ones": [f"{PROVIDER}server_versions::test_older_servers_are_refused_by_name"],
}

CHECKLIST = {
    "state is kept": [f"{SERVER}lifetime::test_everything_is_kept_over_a_restart"],
    "the default project is made by bootstrap; a second one is 400": [
        f"{SERVER}checklist::test_bootstrap_runs_once_and_creates_the_default_project"
    ],
    "secrets are never shown": [f"{SERVER}warehouses::test_no_answer_and_no_profile_holds_a_secret"],
    "overlap": [f"{SERVER}checklist::test_locations_overlap_within_bucket_region_and_endpoint"],
    "names in any case, 503 of a rename": [
        f"{SERVER}checklist::test_names_ignore_case_and_renames_to_taken_names_are_503"
    ],
    "active ones are listed": [f"{SERVER}warehouses::test_inactive_warehouses_are_listed_on_request"],
    "what needs an active one": [
        f"{SERVER}checklist::test_an_inactive_warehouse_is_missing_for",
        f"{SERVER}checklist::test_an_inactive_warehouse_exists_for",
        f"{PROVIDER}server_rules::test_inactive_warehouse_is_activated_only_where_needed",
    ],
    "normal form": [f"{SERVER}warehouses::test_a_profile_is_kept_in_normal_form"],
    "nulls": [f"{SERVER}checklist::test_unset_fields_are_null"],
    "the time of a change": [f"{SERVER}warehouses::test_an_update_that_changes_nothing_leaves_the_time"],
    "a drop purges by default": [
        f"{SERVER}checklist::test_a_drop_without_purge_parameter_purges",
        f"{SERVER}lifetime::test_a_drop_without_purge_keeps_the_files",
    ],
    "soft deletion blocks": [f"{SERVER}checklist::test_a_soft_deleted_table_blocks_dropping_its_namespace"],
    "plain text": [f"{SERVER}checklist::test_a_profile_that_lacks_something_is_refused_in_plain_text"],
    "tokens are given out elsewhere": [
        f"{SERVER}authentication::test_the_server_issues_no_tokens",
        f"{SERVER}authentication::test_discovery_leads_to_tokens_and_keys",
    ],
    "storage that fails each check": [
        f"{SERVER}warehouses::test_a_warehouse_without_working_storage_is_refused",
        f"{SERVER}checklist::test_vended_credentials_that_reach_too_far_are_refused",
    ],
    "versions": [f"{SERVER}server_versions::test_the_process_takes_the_version_as_an_option"],
    "expiry and purge by the clock": [
        f"{SERVER}lifetime::test_a_soft_deleted_table_expires",
        f"{SERVER}lifetime::test_an_undropped_table_does_not_expire",
    ],
}

ALL = [
    (rule, test)
    for rules in (UPDATES, DELETION, PERMISSIONS, ERRORS, VERSIONS, CHECKLIST)
    for rule, tests in rules.items()
    for test in tests
]


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the tests of a file, which may be in any sub-folder of the named folder."""
    folder, _, name = file.rpartition("/")
    (path,) = (TESTS / folder).rglob(f"{name}.py")
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_each_rule_has_its_tests() -> None:
    missing = [(rule, test) for rule, test in ALL if test.partition("::")[2] not in names_in(test.partition("::")[0])]
    assert missing == []
