"""The HTTP API and the page, served by `statecfg serve`. It may import every package except `cli/`."""
