"""`services:`: schema, programs of steps, stations and throughput limits."""
