"""The part of py4j that this repository uses."""
