"""Sensitivity analysis: effects of uncertain inputs on a result, break-even values of two options, and what to measure first."""
