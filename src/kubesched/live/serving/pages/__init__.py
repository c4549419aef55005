"""What is answered: health, metrics, configuration, looks inside. Pure functions make texts and data; pages send them.

Next: `routes` beside this package, which says which path leads where.
"""
