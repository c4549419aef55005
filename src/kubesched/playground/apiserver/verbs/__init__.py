"""What a client can do with an object, one file per verb; knows nothing of HTTP. Begin with ``create.py``."""
