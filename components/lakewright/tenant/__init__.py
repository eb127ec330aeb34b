"""The program of a stack: what one tenant declares, part by part. `tenant.py` is its table of contents."""
