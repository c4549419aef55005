"""What plugin authors use: checks, templates, an extender server."""
