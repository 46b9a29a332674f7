"""EdgeLoom's server from Python: runs, experiments, live events, and requests to runs that serve.

```python
from edgeloom import Client

client = Client("http://localhost:8000", token="loom_…")  # an API token of the account page
run = client.start(cluster_id=1, model="demo-lm", strategy="voltage")
for event in run.events():
    print(event["type"])
print(run.report()["latency_s"], client.runs_frame()[["name", "latency_s"]])
```
"""

from edgeloom.client import Client, Experiment, Refused, Run

__all__ = ["Client", "Experiment", "Refused", "Run"]
