from kubesched.framework import OK, Status


class AvoidSpot:
    name = "AvoidSpot"

    def filter_node(self, cycle, pod, node):
        if pod.labels.get("spot") == "never" and node.node.labels.get("spot") == "true":
            return Status.unresolvable("node(s) were spot nodes")
        return OK
