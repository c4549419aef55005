"""Regular expressions as Kubernetes has them: RE2's syntax, Go's words for what is refused, and never more work than
text times pattern.

Patterns come from anybody who may create a resource claim or a custom resource definition, so Python's own `re`, which
backtracks, never sees them. `compile_pattern` is the way in.

Read `syntax` first; `pattern` runs patterns, with google-re2 where it is installed.
"""

from __future__ import annotations

from kubesched.k8s.patterns.pattern import Pattern, PatternWorkError, compile_pattern
from kubesched.k8s.patterns.syntax import PatternError

__all__ = ["Pattern", "PatternError", "PatternWorkError", "compile_pattern"]
