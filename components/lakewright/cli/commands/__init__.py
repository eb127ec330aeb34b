"""The commands of `lakewright`, one module each."""
