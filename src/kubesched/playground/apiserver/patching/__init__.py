"""Changes to objects as clients write them.

JSON patch, merge patch, strategic merge patch, and server-side apply in ``apply.py``.
"""
