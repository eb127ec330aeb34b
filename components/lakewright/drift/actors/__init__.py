"""Actors of changes and the times, by the records of servers. Only a record of the same change counts."""
