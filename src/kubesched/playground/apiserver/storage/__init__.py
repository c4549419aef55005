"""Where objects are kept: one interface (``store.py``), in memory or in SQLite."""
