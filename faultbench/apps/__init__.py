"""The apps that `forge worker` runs in the bench."""
