"""What can go wrong before the port serves. Everything later is an answer to a request."""

from __future__ import annotations


class ServingError(Exception):
    """The secure port cannot be opened as configured; names the flag or the file."""
