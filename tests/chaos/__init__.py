"""Everything goes wrong at once, for minutes: what was promised must hold all the same."""
