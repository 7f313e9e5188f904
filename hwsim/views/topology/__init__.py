"""How a machine is connected: its links, routes between devices and bisection bandwidth."""
