"""Who changed an object and when, by the records of servers. Only a record of this very change names anybody."""
