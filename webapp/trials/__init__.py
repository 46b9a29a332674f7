"""The service as a whole under faults: `./loom chaos --world service`."""
