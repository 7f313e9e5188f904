"""The time that a training loses when parts fail, by what it goes to, as a figure."""
