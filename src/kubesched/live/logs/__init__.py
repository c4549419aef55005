"""Logs as kube-scheduler writes them: klog's text or JSON, verbosity levels, and no secret in either.

`configure_logs` sets all of it up, once, at the start of a command. Everything else logs with the standard library:
`logger.info("Message in words", extra={"fields": {"pod": …}, "v": 4})`.

Next: `setup`.
"""

from kubesched.live.logs.setup import LogSettingsError, Verbosity, configure_logs, redact

__all__ = ["LogSettingsError", "Verbosity", "configure_logs", "redact"]
