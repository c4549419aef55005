"""`kubesched run --record DIR`: the journal of the scheduling loop, in files that rotate, up to a size.

Lines are packed and written by a thread of their own, four times a second. A journal can only be replayed from its
beginning, so nothing of it is thrown away: once it is as large as it may be, recording ends, which is logged, and
scheduling goes on.

Next: `kubesched.simulator.recording.engine_journal` for what is written.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import zlib
from collections import deque
from pathlib import Path
from typing import IO

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.live.options.effective import configuration_yaml, emulation_yaml
from kubesched.live.options.settings import RunOptions
from kubesched.live.saved_form import reduced, without_secrets
from kubesched.scheduler.engine.self_check import AnswerLimit
from kubesched.simulator.recording.engine_journal import KIND, JournalHeader
from kubesched.simulator.recording.lines import API_VERSION, RecordingError, write_whole

MOST_BYTES = 1 << 30
"""Of a whole journal, packed."""
FILE_BYTES = 64 << 20
_WRITE_EVERY_S = 0.25
_log = logging.getLogger("kubesched.record")


class JournalFiles:
    """`write` takes a line and returns at once."""

    def __init__(
        self, directory: Path, header: JournalHeader, most_bytes: int = MOST_BYTES, file_bytes: int = FILE_BYTES
    ) -> None:
        """Raises RecordingError if a journal is there already, or none can be written."""
        self._directory = directory
        self._most_bytes, self._file_bytes = most_bytes, file_bytes
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(directory.glob("engine-*.jsonl.gz")):
                raise RecordingError(f"{directory}: has a journal already; a journal begins with an empty directory")
            self._number = 0
            self._n_bytes = 0
            self._open()
        except OSError as problem:
            raise RecordingError(f"{directory}: {problem.strerror or problem}") from None
        self._lines: deque[bytes] = deque([msgspec.json.encode(header)])
        """The scheduler's thread puts lines in, the journal's takes them out."""
        self._is_full = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name="journal", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        if not self._is_full:
            self._lines.append(line)

    def close(self) -> None:
        """Everything so far is written before this returns."""
        self._closing.set()
        self._thread.join()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _keep_writing(self) -> None:
        try:
            is_closing = False
            while not is_closing:
                is_closing = self._closing.wait(_WRITE_EVERY_S)
                self._write_waiting()
            self._finish()
        except OSError as problem:
            self._is_full = True
            _log.error("The journal cannot be written any more", extra={"fields": {"err": str(problem)}})

    def _write_waiting(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines or self._is_full:
            return
        data = self._pack.compress(b"\n".join((*lines, b""))) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        write_whole(self._file, data)
        self._n_bytes += len(data)
        if self._n_bytes >= self._most_bytes:
            self._is_full = True
            _log.warning(
                "The journal is as large as it may be: recording ends, scheduling goes on",
                extra={"fields": {"directory": str(self._directory), "bytes": self._n_bytes}},
            )
        elif self._file.tell() >= self._file_bytes:
            self._finish()
            self._open()

    def _open(self) -> None:
        self._number += 1
        path = self._directory / f"engine-{self._number:04d}.jsonl.gz"
        self._file: IO[bytes] = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0)
        self._pack = zlib.compressobj(level=1, wbits=31)

    def _finish(self) -> None:
        write_whole(self._file, self._pack.flush(zlib.Z_FINISH))
        self._file.close()


def open_journal(options: RunOptions, directory: Path, seed: int, limit: AnswerLimit) -> JournalFiles:
    emulation = options.emulation
    header = JournalHeader(
        API_VERSION,
        KIND,
        configuration_yaml(options.configuration) if emulation is None else emulation_yaml(emulation),
        seed=seed,
        started_s=time.time(),
        clock_s=time.monotonic(),
        keeps_classes=options.keeps_classes,
        max_unschedulable_s=options.pod_max_in_unschedulable_pods_for_s,
        answer_base_s=limit.base_s,
        answer_each_s=limit.each_s,
        emulate="" if emulation is None else emulation.generation.version,
        gates={} if emulation is None else dict(emulation.gates.values),
    )
    return JournalFiles(directory, header)


def recorded_form(item: KubeObject) -> KubeObject:
    """The object without what no scheduler reads. Most pods have nothing of that; all that changes comes here.

    A pod's conditions stay whole: what is written depends on the messages. So do claims for devices, of which the
    scheduler writes back what it was given.
    """
    if not isinstance(item, Pod | Node | ResourceClaim):
        kept: KubeObject = reduced(item)
        return kept
    metadata = without_secrets(item.metadata) if item.metadata.annotations is not None else item.metadata
    if not isinstance(item, Pod):
        return item if metadata is item.metadata else replace(item, metadata=metadata)
    spec = item.spec
    if spec.volumes is not None:
        spec = replace(spec, volumes=reduced(spec.volumes))
    containers = tuple(without_secrets(one) if one.env is not None else one for one in spec.containers)
    if any(one.env is not None for one in spec.containers):
        spec = replace(spec, containers=containers)
    if spec.init_containers is not None and any(one.env is not None for one in spec.init_containers):
        spec = replace(spec, init_containers=tuple(map(without_secrets, spec.init_containers)))
    if metadata is item.metadata and spec is item.spec:
        return item
    return replace(item, metadata=metadata, spec=spec)
