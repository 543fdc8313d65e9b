"""Programs that models write: checked, run, suspended for consent, and continued."""
