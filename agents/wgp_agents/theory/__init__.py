"""What [Deng22] states, checked on real instances."""
