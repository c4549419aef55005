"""An embedded Kubernetes API server. It knows nothing of scheduling; whoever wants to schedule talks HTTP with it.

    http ──▶ verbs ──▶ kinds, patching ──▶ openapi ──▶ served_resource ──▶ storage

Each imports only from those after it. ``http`` reads requests and writes answers; ``verbs`` has what a client can do,
one file per verb; ``kinds`` the rules of each kind, ``patching`` the sorts of patches, ``openapi`` the shapes of
objects. ``served_resource`` is the contract between verbs and kinds. Begin with ``server.py``.
"""
