"""The statements of [Deng22], each checked on real instances. See `wgp_agents.verify.run`."""
