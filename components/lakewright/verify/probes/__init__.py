"""The probes, one file each; `lakewright.verify.registry` lists them."""
