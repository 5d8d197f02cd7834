"""The rules that decide which hook of a unit is due: pure, and below the store, which uses them."""
