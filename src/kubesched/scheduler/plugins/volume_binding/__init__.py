"""VolumeBinding: a pod goes only where its volumes are, can be bound, or can be provisioned.

A pod's path through the files: `finding` sorts its PersistentVolumeClaims and finds the nodes where all of them can be
satisfied (`matching` for volumes that exist, and for those that can be provisioned), `binding` assumes the chosen
volumes, has them written and waits until they are bound. `plugin` has the extension points and the queueing hints.
"""

from kubesched.scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
