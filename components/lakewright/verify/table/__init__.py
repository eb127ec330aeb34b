"""Tables that probes write and read: the files of Iceberg, and the requests to catalog and storage."""
