"""The HTTP API and the page, served by `statecfg serve`."""
