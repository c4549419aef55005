"""The HTTP side: paths, login, encodings, errors. Begin with ``app.py``."""
