"""The kinds served: names, defaults, validation and table columns.

``served_resource.py`` is the contract, ``registry.py`` the list, ``serving.py`` what all kinds share.
"""
