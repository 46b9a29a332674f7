"""What installed packages add to EdgeLoom: how it is found and tried, and told about where it is wrong."""
