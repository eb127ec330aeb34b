"""Table maintenance: the registry of jobs, switches that hold jobs back, the job runner, and restores."""
