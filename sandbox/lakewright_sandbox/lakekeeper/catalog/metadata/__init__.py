"""Iceberg metadata of tables and views: pure functions over their JSON documents."""
