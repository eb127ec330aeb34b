"""The resources of a tenant as a whole: its record and its deletion guard."""
