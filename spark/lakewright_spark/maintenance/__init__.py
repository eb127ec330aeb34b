"""Table maintenance: the registry of jobs, the switches that hold jobs back, and restores of backups."""
