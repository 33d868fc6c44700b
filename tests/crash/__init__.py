"""Kill runs, race them, and break their storage: `make test-crash`."""
