"""The run log: runs of maintenance jobs and their rows, kept in the tables of namespace `ops`."""
