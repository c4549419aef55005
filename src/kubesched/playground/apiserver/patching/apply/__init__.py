"""Server-side apply: who owns which field, what conflicts, what goes away.

Begin with ``applying.py``; ``managed.py`` keeps the owners.
"""

from kubesched.playground.apiserver.patching.apply.applying import apply
from kubesched.playground.apiserver.patching.apply.managed import record

__all__ = ["apply", "record"]
