"""What is answered: health, metrics, configuration, looks inside. Pure functions make texts and data; pages send them.

Next: `server` beside this package, whose `routes` say which path leads where.
"""
