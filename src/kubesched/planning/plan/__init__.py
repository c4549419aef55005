"""`kubesched plan`: which nodes to buy, at the least cost, so that the scheduler places every pod.

A solver proposes and bounds, the scheduler judges. Read `planner` first, which tells the story; then

- `request` for what is asked, and the cluster that is planned for; `reading` for how pods and machines become numbers,
  `model`;
- `packing` and `patterns` for proposals, `bounds` for lower bounds and for what one node can hold;
- `fleets` for fleets on which a scheduler that spreads pods loses little;
- `judge` for the verdict of the scheduler, `search` for repair and improvement, `enumeration` for small cases;
- `certificate` for the proof and for checking it, `reporting` and `report` for the answer.
"""
