"""State that outlives a request: in this process, or shared by all replicas."""
