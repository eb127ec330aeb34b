"""The registry of executions: a database of the platform with executions and the tables that they wrote."""
