"""The schedulers of older versions: their configurations, plugins, rules and words."""
