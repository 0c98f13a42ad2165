"""The statements of [Deng22] as functions; `verify` checks them on real instances.

Regression (Eq. 3-4, any data), the surrogate m_t, the regret bound of Theorem 4 and the decay of
Corollary 8. Those that agents need too are in `wgp_agents.gp`: gains, widths and tuning.
"""
