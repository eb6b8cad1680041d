"""The state plane: join state in immutable Arrow files, written and mapped by workers."""
