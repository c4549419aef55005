"""A recording played again: does another scheduler decide as the recorded one did, and what would it have done?

`followed_cluster` is the state that follows a recording, `judge` decides each binding again in it, `agreement` is what
comes of that. `closed` lets our decisions take effect instead. `kubesched.live.shadow` does the same beside a live
cluster.
"""
