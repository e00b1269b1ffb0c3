"""Browse memory: topics, graph, status and the doctor."""
