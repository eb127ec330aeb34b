"""State and processes of a sandbox: errors, access keys, the state file, starting and stopping of processes."""
