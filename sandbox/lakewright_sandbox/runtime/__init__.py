"""What the sandbox's processes share: errors, access keys, the state file, starting and stopping."""
