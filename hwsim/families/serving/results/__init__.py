"""Results of served models: logs of requests, statistics, and their intervals."""
