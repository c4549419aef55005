"""The shape of every built-in kind and the OpenAPI documents made from it.

Begin with ``schemas.py``; ``documents.py`` answers /openapi.
"""
