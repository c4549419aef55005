"""Recordings of a cluster: what there was, what changed and when, and which pods were bound to which nodes.

`lines` is the format and writes it, `reader` reads it; `anonymous` hides names. Nothing here knows of a server:
`kubesched.live.recorder` follows one.
"""
