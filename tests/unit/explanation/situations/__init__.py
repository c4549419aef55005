"""Pending pods on realistic clusters: each situation says its true cause, and which nodes are nearest."""
