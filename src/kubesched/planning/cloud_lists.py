"""The machines that the clouds' own commands list, each as JSON: `aws ec2 describe-instance-types`, `gcloud compute
machine-types list` and `az vm list-skus`.

These lists have no prices, and Amazon's no zones: a price list gives both. What a kubelet keeps is taken off as EKS,
GKE and AKS do it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kubesched.k8s.model.quantity import parse
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.planning.catalogue import Catalogue, CatalogueError, MachineOffer, Shape
from kubesched.planning.catalogue_checks import DEFAULT_PODS, check_labels, machine_amounts
from kubesched.planning.catalogue_kind import less_reserved
from kubesched.planning.reserves import reserved

ON_DEMAND, SPOT = "on-demand", "spot"
ARCH, OS, REGION = "kubernetes.io/arch", "kubernetes.io/os", "topology.kubernetes.io/region"
_EPHEMERAL = "ephemeral-storage"
_ARCHITECTURES = {"x86_64": "amd64", "x64": "amd64", "arm64": "arm64"}
_SEEN_BY_THE_SYSTEM = 0.925
"""Of the memory that Amazon and Azure name, as Karpenter reckons: hypervisor and firmware have the rest."""
_LOCAL_SSD_GB = 375
_MAC = "_mac"
_AWS_DISK, _AWS_DISK_LEFT = "20Gi", "17Gi"
"""The root volume that Karpenter gives a node by default, and what is allocatable of it."""


def cloud_list(document: Any, source: str) -> Catalogue | None:
    """The machines of a cloud's list; None if the document is none."""
    items = document.get("InstanceTypes") if isinstance(document, Mapping) else document
    if not isinstance(items, list):
        return None
    first = next((item for item in items if isinstance(item, Mapping)), None)
    if first is None:
        return None
    read: Callable[[Sequence[Any], str], list[Shape]]
    if "InstanceType" in first and "VCpuInfo" in first:
        read = _of_aws
    elif "guestCpus" in first:
        read = _of_gcloud
    elif "resourceType" in first and "name" in first:
        read = _of_azure
    else:
        return None
    return Catalogue(tuple(read(items, source)), source=source)


class _Entry:
    """An entry of a list; what is asked of it and is not there is a CatalogueError."""

    def __init__(self, given: Any, number: int, name_field: str, source: str) -> None:
        name = given.get(name_field) if isinstance(given, Mapping) else None
        if not isinstance(name, str) or not name:
            raise CatalogueError(source, f"machine {number}", f"{name_field}: missing")
        self.given: Mapping[str, Any] = given
        self.name = name
        self.source = source
        self.where = f"machine {name}"

    def error(self, problem: str) -> CatalogueError:
        return CatalogueError(self.source, self.where, problem)

    def get(self, path: str, kind: type | tuple[type, ...]) -> Any:
        """What is there, of this kind; None if it is not."""
        found: Any = self.given
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is not None and (not isinstance(found, kind) or isinstance(found, bool) != (kind is bool)):
            raise self.error(f"{path}: {found!r:.40} is not expected there")
        return found

    def number(self, path: str) -> int:
        """A number that must be there, and is more than none."""
        return self.positive(self.get(path, (int, float)), path)

    def positive(self, found: float | str | None, path: str) -> int:
        if found is None:
            raise self.error(f"{path}: missing")
        try:
            number = float(found)
        except ValueError:
            raise self.error(f"{path}: {found!r:.40} is not a number") from None
        if not 1 <= number < 10**12:
            raise self.error(f"{path}: {found} is not a number of what a machine could have")
        return int(number)

    def some(self, path: str) -> list[Mapping[str, Any]]:
        found = self.get(path, list) or []
        if not all(isinstance(one, Mapping) for one in found):
            raise self.error(f"{path}: a list of mappings is expected")
        return list(found)

    def texts(self, path: str) -> list[str]:
        found = self.get(path, list) or []
        if not all(isinstance(one, str) for one in found):
            raise self.error(f"{path}: a list of texts is expected")
        return list(found)

    def shape(
        self,
        formula: str,
        amounts: Mapping[str, int | str],
        labels: Mapping[str, str],
        offers: Iterable[MachineOffer],
        volume_limits: Mapping[str, int] | None = None,
    ) -> Shape:
        capacity = machine_amounts(dict(amounts), self.source, self.where, "capacity")
        cpu, memory, pods = (parse(capacity[name]) for name in (CPU, MEMORY, PODS))
        kept = reserved(formula, cpu.milli_value, memory.value, pods.value)
        known = {key: value for key, value in labels.items() if value}
        check_labels(known, self.source, self.where)
        allocatable = less_reserved(capacity, kept, self.source, self.where)
        if formula == "eks":
            capacity, allocatable = {**capacity, _EPHEMERAL: _AWS_DISK}, {**allocatable, _EPHEMERAL: _AWS_DISK_LEFT}
        return Shape(self.name, allocatable, capacity, known, (), dict(volume_limits or {}), tuple(offers))


# -- Amazon ------------------------------------------------------------------------------------------------------------

AWS_LABELS = "karpenter.k8s.aws/instance-"
_AWS_NAME = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+)[^.]*\.(.+)")
_AWS_GPUS = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "habana": "habana.ai/gaudi"}


def aws_labels(name: str) -> dict[str, str]:
    """What Karpenter's labels say of a type by its name alone: an m7i xlarge is of category m, generation 7."""
    match = _AWS_NAME.fullmatch(name)
    if match is None:
        return {}
    values = {"category": match[1], "family": name.partition(".")[0], "generation": match[2], "size": match[3]}
    return {AWS_LABELS + key: value for key, value in values.items()}


def _of_aws(items: Sequence[Any], source: str) -> list[Shape]:
    shapes = []
    for number, item in enumerate(items):
        entry = _Entry(item, number, "InstanceType", source)
        architectures = entry.texts("ProcessorInfo.SupportedArchitectures")
        arch = next((_ARCHITECTURES[one] for one in architectures if one in _ARCHITECTURES), "")
        if any(one.endswith(_MAC) for one in architectures):
            continue  # no kubelet runs there
        cpus, memory_mib = entry.number("VCpuInfo.DefaultVCpus"), entry.number("MemoryInfo.SizeInMiB")
        extended, gpu_labels = _aws_devices(entry)
        amounts: dict[str, int | str] = {
            CPU: cpus,
            MEMORY: f"{int(memory_mib * _SEEN_BY_THE_SYSTEM)}Mi",
            PODS: _aws_pods(entry),
            **extended,
        }
        disk_gb = entry.get("InstanceStorageInfo.TotalSizeInGB", int)
        labels = {
            OS: "linux",
            ARCH: arch,
            **aws_labels(entry.name),
            f"{AWS_LABELS}cpu": str(cpus),
            f"{AWS_LABELS}memory": str(memory_mib),
            f"{AWS_LABELS}cpu-manufacturer": (entry.get("ProcessorInfo.Manufacturer", str) or "").lower().split(" ")[0],
            f"{AWS_LABELS}hypervisor": entry.get("Hypervisor", str) or "",
            f"{AWS_LABELS}local-nvme": str(disk_gb) if disk_gb else "",
            **gpu_labels,
        }
        classes = entry.texts("SupportedUsageClasses") or [ON_DEMAND]
        offers = [MachineOffer("", one) for one in (ON_DEMAND, SPOT) if one in classes]
        shapes.append(entry.shape("eks", amounts, labels, offers or [MachineOffer()], _aws_volumes(entry)))
    return shapes


def _aws_pods(entry: _Entry) -> int:
    """An address for each pod, as the VPC's CNI plugin hands them out: the first address of each interface is the
    node's, and two pods use the node's network."""
    interfaces = entry.get("NetworkInfo.MaximumNetworkInterfaces", int)
    addresses = entry.get("NetworkInfo.Ipv4AddressesPerInterface", int)
    if not interfaces or not addresses:
        return DEFAULT_PODS
    return entry.positive(interfaces * (addresses - 1) + 2, "NetworkInfo")


def _aws_volumes(entry: _Entry) -> dict[str, int]:
    """Without the root volume, and where interfaces and volumes share slots, without one for an interface."""
    most = entry.get("EbsInfo.MaximumEbsAttachments", int)
    if not most:
        return {}
    taken = 1 if entry.get("EbsInfo.AttachmentLimitType", str) == "dedicated" else 2
    return {"ebs.csi.aws.com": max(0, most - taken)}


def _aws_devices(entry: _Entry) -> tuple[dict[str, int], dict[str, str]]:
    found: dict[str, int] = {}
    labels: dict[str, str] = {}
    for number, gpu in enumerate(entry.some("GpuInfo.Gpus")):
        maker = str(gpu.get("Manufacturer") or "").lower()
        count = entry.positive(gpu.get("Count"), f"GpuInfo.Gpus[{number}].Count")
        resource = _AWS_GPUS.get(maker)
        if resource is not None:
            found[resource] = found.get(resource, 0) + count
        memory = gpu.get("MemoryInfo")
        size = memory.get("SizeInMiB") if isinstance(memory, Mapping) else None
        labels = {
            f"{AWS_LABELS}gpu-name": str(gpu.get("Name") or "").lower().replace(" ", "-"),
            f"{AWS_LABELS}gpu-manufacturer": maker,
            f"{AWS_LABELS}gpu-count": str(count),
            f"{AWS_LABELS}gpu-memory": str(size or ""),
        }
    for number, device in enumerate(entry.some("NeuronInfo.NeuronDevices")):
        count = entry.positive(device.get("Count"), f"NeuronInfo.NeuronDevices[{number}].Count")
        found["aws.amazon.com/neuron"] = found.get("aws.amazon.com/neuron", 0) + count
    return found, labels


# -- Google ------------------------------------------------------------------------------------------------------------

_GONE = ("OBSOLETE", "DELETED")


def _of_gcloud(items: Sequence[Any], source: str) -> list[Shape]:
    """The list has an entry for each zone."""
    first: dict[str, _Entry] = {}
    zones: dict[str, dict[str, None]] = {}
    for number, item in enumerate(items):
        entry = _Entry(item, number, "name", source)
        if entry.get("deprecated.state", str) in _GONE:
            continue
        zone = (entry.get("zone", str) or "").rpartition("/")[2]
        zones.setdefault(first.setdefault(entry.name, entry).name, {})[zone] = None
    shapes = []
    for name, entry in first.items():
        amounts: dict[str, int | str] = {
            CPU: entry.number("guestCpus"),
            MEMORY: f"{entry.number('memoryMb')}Mi",
            PODS: DEFAULT_PODS,
        }
        kinds = []
        for number, one in enumerate(entry.some("accelerators")):
            kind = str(one.get("guestAcceleratorType") or "").rpartition("/")[2]
            count = entry.positive(one.get("guestAcceleratorCount"), f"accelerators[{number}].guestAcceleratorCount")
            amounts["google.com/tpu" if kind.startswith("ct") else "nvidia.com/gpu"] = count
            kinds.append(kind)
        n_disks = _whole(entry.get("bundledLocalSsds.partitionCount", int))
        if n_disks:
            amounts[_EPHEMERAL] = f"{n_disks * _LOCAL_SSD_GB}G"
        in_zones = [zone for zone in zones[name] if zone]
        labels = {
            OS: "linux",
            ARCH: _ARCHITECTURES.get((entry.get("architecture", str) or "x86_64").lower(), ""),
            REGION: in_zones[0].rpartition("-")[0] if in_zones else "",
            "cloud.google.com/machine-family": name.partition("-")[0],
            "cloud.google.com/gke-accelerator": kinds[0] if kinds else "",
        }
        n_volumes = _whole(entry.get("maximumPersistentDisks", int))
        limits = {"pd.csi.storage.gke.io": n_volumes - 1} if n_volumes else {}
        shapes.append(entry.shape("gke", amounts, labels, [MachineOffer(zone) for zone in zones[name]], limits))
    return shapes


def _whole(found: int | None) -> int:
    return max(0, found or 0)


# -- Azure -------------------------------------------------------------------------------------------------------------

_AZURE_AMD = re.compile(r"Standard_(NV\d+as_v4|N\w*MI\d+\w*|NG\w+)", re.IGNORECASE)


def _of_azure(items: Sequence[Any], source: str) -> list[Shape]:
    shapes: dict[str, Shape] = {}
    for number, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("resourceType") != "virtualMachines":
            continue
        entry = _Entry(item, number, "name", source)
        can = {str(one.get("name")): str(one.get("value")) for one in entry.some("capabilities")}
        zones = _azure_zones(entry)
        if zones is None or entry.name in shapes:
            continue
        memory_gib = can.get("MemoryGB")
        try:
            memory_mib = int(float(memory_gib or "nothing") * 1024 * _SEEN_BY_THE_SYSTEM)
        except (ValueError, OverflowError):
            raise entry.error(f"capabilities.MemoryGB: {memory_gib!r} is not a number") from None
        amounts: dict[str, int | str] = {
            CPU: entry.positive(can.get("vCPUsAvailable") or can.get("vCPUs"), "capabilities.vCPUs"),
            MEMORY: f"{entry.positive(memory_mib, 'capabilities.MemoryGB')}Mi",
            PODS: DEFAULT_PODS,
        }
        n_gpus = can.get("GPUs", "0")
        if n_gpus not in ("", "0"):
            maker = "amd.com/gpu" if _AZURE_AMD.match(entry.name) else "nvidia.com/gpu"
            amounts[maker] = entry.positive(n_gpus, "capabilities.GPUs")
        disk_mb = can.get("MaxResourceVolumeMB", "0")
        if disk_mb not in ("", "0"):
            amounts[_EPHEMERAL] = f"{entry.positive(disk_mb, 'capabilities.MaxResourceVolumeMB')}Mi"
        region = next(iter(entry.texts("locations")), "").lower()
        labels = {
            OS: "linux",
            ARCH: _ARCHITECTURES.get(can.get("CpuArchitectureType", "x64").lower(), ""),
            REGION: region,
            "karpenter.azure.com/sku-name": entry.name,
            "karpenter.azure.com/sku-cpu": str(amounts[CPU]),
        }
        kinds = [ON_DEMAND, SPOT] if can.get("LowPriorityCapable") == "True" else [ON_DEMAND]
        offers = [MachineOffer(f"{region}-{zone}" if zone else "", kind) for zone in zones or [""] for kind in kinds]
        n_disks = can.get("MaxDataDiskCount", "0")
        limits = {"disk.csi.azure.com": int(n_disks)} if n_disks.isdecimal() and int(n_disks) else {}
        shapes[entry.name] = entry.shape("aks", amounts, labels, offers, limits)
    return list(shapes.values())


def _azure_zones(entry: _Entry) -> list[str] | None:
    """Those that the subscription may use; None if it may use none."""
    closed: set[str] = set()
    for one in entry.some("restrictions"):
        if one.get("type") == "Location":
            return None
        info = one.get("restrictionInfo")
        zones = info.get("zones") if isinstance(info, Mapping) else None
        closed.update(str(zone) for zone in zones or () if isinstance(zones, list))
    offered = [zone for one in entry.some("locationInfo") for zone in one.get("zones") or () if isinstance(zone, str)]
    left = sorted({zone for zone in offered if zone not in closed})
    return None if offered and not left else left
