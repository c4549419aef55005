"""What a report was made of: a hash of what was given, and how a record of it begins.

Two reports with the same hash answered the same question about the same objects, under the same configuration.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

import kubesched
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.spelling import record_field
from kubesched.planning.catalogue import CATALOGUE_VERSION, Catalogue
from kubesched.planning.html_report import ReportAsPage
from kubesched.planning.several_runs import Runs
from kubesched.simulator.column_table import Cell, ColumnTable
from kubesched.simulator.trial import LoadedWorld

_DIGITS = 16


@dataclass(frozen=True)
class Provenance:
    """The objects are kept, and looked at when somebody asks for the hash."""

    objects: tuple[KubeObject, ...] = ()
    config: object = None
    catalogue: Catalogue | None = None
    question: Any = None
    seed: int | None = None
    runs: Runs | None = None
    """With which seeds and orders of arrival, where several can be asked for."""

    @cached_property
    def inputs_hash(self) -> str:
        machines = None if self.catalogue is None else self.catalogue.to_dict()
        kinds = [type(item).__name__ for item in self.objects]
        parts = (kinds, self.objects, self.config, machines, self.question, self.runs or self.seed)
        written = msgspec.json.encode(parts, enc_hook=str, order="deterministic")
        return hashlib.sha256(written).hexdigest()[:_DIGITS]

    @classmethod
    def of_world(
        cls,
        world: LoadedWorld,
        question: Any,
        catalogue: Catalogue | None = None,
        seed: int | None = None,
        runs: Runs | None = None,
    ) -> Provenance:
        """Asked about a world as it is now. To be noted before anything is tried: trials leave it in another order."""
        cluster = world.cluster
        placed = sorted(cluster.placed.values(), key=lambda info: info.key)
        pods = (info.pod for info in (*placed, *cluster.pending.values()))
        objects = (*cluster.table.nodes, *pods, *cluster.objects, *world.workloads, *world.bounds)
        return cls(objects, world.config, catalogue, question, seed, runs)


UNASKED = Provenance()
"""Of a report that nobody asked for: put together from parts."""


class AnsweredReport(ReportAsPage):
    """A report that knows what it was asked."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def asked(self) -> Provenance: ...

    @property
    def inputs_hash(self) -> str:
        """Of the objects, the configuration and the question."""
        return self.asked.inputs_hash

    def _about(self) -> dict[str, Any]:
        """How its record begins."""
        record = {
            "apiVersion": CATALOGUE_VERSION,
            "kind": type(self).__name__,
            "kubesched": kubesched.__version__,
            "inputs": self.inputs_hash,
        }
        runs = self.asked.runs
        if runs is not None:
            return {**record, "seed": runs.seed, "seeds": list(runs.seeds), "orders": runs.n_orders}
        return record if self.asked.seed is None else {**record, "seed": self.asked.seed}


# -- fields of records -------------------------------------------------------------------------------------------------


def as_record(given: Any) -> dict[str, Any]:
    """A dataclass, its fields spelled as in Kubernetes."""
    found: dict[str, Any] = asdict(given, dict_factory=lambda pairs: {record_field(name): one for name, one in pairs})
    return found


def rows_of(table: ColumnTable) -> list[dict[str, Cell]]:
    """The rows of a table, its columns spelled as in Kubernetes."""
    return [{record_field(name): cell for name, cell in row.items()} for row in table.to_rows()]
