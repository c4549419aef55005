"""The shape of every built-in kind and the OpenAPI documents made from it.

Begin with ``schema_table.py``; ``documents_v3.py`` answers /openapi.
"""
