"""One run on the host: planning, execution, orphans, the report. Imports all of `remote` except the units."""
