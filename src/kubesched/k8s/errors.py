"""`KubeschedError`, from which the errors derive that users of the library meet.

    try:
        kubesched.explain("dump.json", "shop/web-1")
    except kubesched.KubeschedError as error:
        print(error)

Each keeps the base of Python's own that it always had (mostly `ValueError`), and says in one line what is wrong: the
file, the object and the field, where there are any. Whatever else is raised is a bug of ours, or of a plugin.
"""

from __future__ import annotations


class KubeschedError(Exception):
    """What was given cannot be read, understood or done; the text says what, and where it stands."""


class KubeschedWarning(UserWarning):
    """The input is enough for an answer, but perhaps not the one expected: a dump without a kind."""
