"""One run on the host: planning, execution, what stays behind, the report. Imports all of `remote` but the units."""
