"""The tools of other memory systems under their own names, for agents that were taught those.

Arguments and answers are as those systems document them; behind them is the same memory.
"""
