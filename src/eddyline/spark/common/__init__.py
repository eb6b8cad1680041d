"""What `where`, `native` and `engine` share. Nothing is imported here: workers load little."""
