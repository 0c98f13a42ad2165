"""Checks of the statements of [Deng22]: each measures a value and compares it with its bound.

Beside it stands a control, the same with something that must fail: without it a row says nothing.

A check is a function that yields rows and curves; `run` has them all, in the paper's order.
"""
