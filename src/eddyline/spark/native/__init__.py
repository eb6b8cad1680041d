"""The JVM plane: native conditions, learnt from a sample and compiled into Columns."""
