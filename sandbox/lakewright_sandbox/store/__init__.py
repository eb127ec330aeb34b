"""The S3 store of a sandbox, if it is not the emulated AWS: a MinIO of its own, or a running store."""
