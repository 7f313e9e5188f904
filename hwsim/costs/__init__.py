"""Costs: power, energy, carbon and money of a run or of a closed form, each with its 90 % interval.

prices = load_prices("prices.yaml")                               None: the library's alone
machine = api.load_machine("dgx-h100")
energy = energy_at(machine, 3600, {"gpu": 0.8, "gpu.memory": 0.15})   or energy_of(result)
cost = cost_of(price_of(machine, prices)["on_demand"], 3600, energy, prices, nodes=8)
"""
