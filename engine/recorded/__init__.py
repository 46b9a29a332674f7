"""Makes scenarios and workloads of recorded files: a link's rates, arriving requests, prompts."""
