"""A node belongs to the tenant whose pod came first: pods with another `tenant` label are kept off it."""

from kubesched.framework import OK, Status


class OneTenant:
    name = "OneTenant"

    def filter_node(self, cycle, pod, node):
        mine = pod.labels.get("tenant")
        others = {other.labels.get("tenant") for other in node.pods} - {None, mine}
        if mine and others:
            return Status.unschedulable("node(s) belong to another tenant")
        return OK
