"""Logs as kube-scheduler writes them: klog's text or JSON, verbosity levels, and no secret in either.

`configure_logs` sets all of it up, once, at the start of a command. Everything else logs with the standard library:
`logger.info("Message in words", extra={"fields": {"pod": …}, "v": 4})`.

Next: `setup`, then `verbosity` and `redaction`.
"""

from kubesched.live.logs.redaction import redact
from kubesched.live.logs.setup import configure_logs
from kubesched.live.logs.verbosity import LogSettingsError, Verbosity

__all__ = ["LogSettingsError", "Verbosity", "configure_logs", "redact"]
