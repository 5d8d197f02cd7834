"""The verb `hook`: hook objects, their log and registrations."""
