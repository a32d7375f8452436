"""What the documentation site is built with: pages made from the code, so that they cannot differ from it."""
