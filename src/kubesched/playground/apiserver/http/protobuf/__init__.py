"""Kubernetes protobuf bodies into plain objects. Begin with ``envelope.py``."""
