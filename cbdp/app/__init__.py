"""What the commands do. On the wall: these modules may see trips, and nothing right of the wall imports them."""
