"""The tools of other memory systems under their own names, for agents that know those.

Arguments and answers are as those systems document them; behind them is the same memory.
"""
