"""Standby: copies of a warehouse's tables in another catalog and bucket, which take over if the warehouse is lost."""
