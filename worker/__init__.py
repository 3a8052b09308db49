"""The worker: takes due events from the database and processes them."""
