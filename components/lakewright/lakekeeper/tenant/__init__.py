"""Resources for a whole tenant: its record and its deletion guard."""
