"""What came of served models: logs of requests, statistics, and how sure those are."""
