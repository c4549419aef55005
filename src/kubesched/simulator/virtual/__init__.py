"""A simulated cluster around the scheduling loop: an API server, kubelets and controllers in virtual time.

Read `cluster` first: it puts the parts together and lets time pass. `store` is what they share.
"""
