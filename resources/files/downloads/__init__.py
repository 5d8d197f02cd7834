"""Files from elsewhere: downloads, checkouts of Git and released programs."""
