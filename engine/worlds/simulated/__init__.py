"""The simulated world: the programs of the real one in virtual time, on shapes, in one process.

- `world.py` puts the parts together and runs one program per device. - `kernel.py` is the clock: timed
actions, and programs that wait for them. - `device.py` prices operations, disk accesses and sends; each takes
its virtual time. - `network.py` carries messages over shared links: `flows.py` has their rates, `links.py`
delays, losses and outages, and `tcp/` the delay of a message through packet loss. - `faults.py` applies the
scenario, and reports failed devices to the others.

Imports go one way: world → faults → device → network → kernel.
"""
