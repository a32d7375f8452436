"""What comes in and goes out: streams of trips (private), stops and zones (public)."""
