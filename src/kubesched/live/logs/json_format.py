"""kube's JSON format: one object a line, `{"ts":1700000000000.1,"caller":"app/run.py:12","msg":"…","v":0,…}`.

`ts` is in milliseconds. Errors have `err` and no `v`.

Next: `redaction`, through which all of it goes.
"""

from __future__ import annotations

import logging
from pathlib import PurePath

import msgspec

from kubesched.live.logs.redaction import redact
from kubesched.live.logs.text_format import fields_of
from kubesched.live.logs.verbosity import v_of


class KlogJsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{'/'.join(PurePath(record.pathname).parts[-2:])}:{record.lineno}",
            "msg": redact(record.getMessage()),
        }
        if record.levelno < logging.ERROR:
            line["v"] = v_of(record)
        for name, value in fields_of(record, self).items():
            line[f"{name}_" if name in line else name] = value
        return msgspec.json.encode(line).decode()
