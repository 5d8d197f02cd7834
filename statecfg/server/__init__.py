"""The HTTP API and the page, served by `statecfg serve`. It may import every room except `cli/`."""
