"""Plugins as older versions had them: those that are gone, and the earlier ways of those that stayed.

All answer node by node: what they guarantee is the answer of their time, not today's speed. What a version did
differently is asked of `kubesched.older.config.generations`.

Next: `kinds`, the table of them; `rejection` for how reasons become a status.
"""
