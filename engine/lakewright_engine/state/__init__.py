"""The state of a stack in a file backend: checkpoints, secrets, locks and edits."""
