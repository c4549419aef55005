"""The same decisions offline. `sequence` places given pods one after another, each seeing the earlier ones."""
