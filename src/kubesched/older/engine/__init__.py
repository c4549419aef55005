"""The scheduling cycle as older schedulers ran it: node by node, with their preemption.

Next: `scheduler`, which tells the story; `build`, which makes one from a `kubesched.older.config.Emulation`.
"""
