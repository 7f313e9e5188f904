"""What a training whose parts fail loses its time to, as a figure."""
