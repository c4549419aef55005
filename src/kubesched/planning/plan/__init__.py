"""`kubesched plan`: which nodes to buy, at the least cost, so that the scheduler places every pod.

A solver proposes and bounds, the scheduler judges. Read `planner` first, which tells the story; then

- `planned_world` for the cluster that is planned for, `reading` for how pods and machines become numbers, `model`;
- `packing`, `patterns` and `aggregate` for proposals and lower bounds, `knapsack` for what one node can hold;
- `judge` for the verdict of the scheduler, `search` for repair and improvement, `enumeration` for small cases;
- `certificate` for the proof and for checking it, `report` and `report_text` for the answer.
"""
