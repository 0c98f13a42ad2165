"""The statements of [Deng22], checked on real instances: see `wgp_agents.theory.verify.run`."""
