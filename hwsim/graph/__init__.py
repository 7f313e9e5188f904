"""What passes between devices and when: ops, queues and pools as columns."""
