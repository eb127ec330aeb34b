"""What CI shows and publishes of a fleet: comments, job summaries, issues, messages, Events and gauges."""
