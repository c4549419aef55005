"""Regular expressions as Kubernetes has them: RE2's syntax, Go's words for what is refused, and never more work than
text times pattern.

Patterns come from anybody who may create a resource claim or a custom resource definition, so Python's own `re`, which
backtracks, never sees them. `compile_pattern` is the way in.

Read `syntax` first, then `classes`; `automaton` runs patterns, `pattern` prefers google-re2 where it is installed.
"""

from __future__ import annotations

from kubesched.k8s.patterns.automaton import PatternWorkError
from kubesched.k8s.patterns.classes import PatternError
from kubesched.k8s.patterns.pattern import Pattern, compile_pattern

__all__ = ["Pattern", "PatternError", "PatternWorkError", "compile_pattern"]
