"""Other people's formats and frameworks as sources of tools; each imported where it lives."""
