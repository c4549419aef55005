"""The in-tree plugins, one module or package each; none knows another. `registry` is the table of all of them.

`older` has those of earlier versions, and today's as they were then.
"""
