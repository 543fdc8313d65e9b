"""The servers behind the gateway: reached, started, stopped, listed, relayed to."""
