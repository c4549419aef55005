"""The kinds served: names, defaults, validation and table columns.

``kind.py`` is the contract, ``registry.py`` the list, ``serving.py`` what all kinds share.
"""
