"""Comments, job summaries, issues, messages, Events and gauges of a fleet, for CI."""
