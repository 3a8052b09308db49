"""memoryd: long-term memory for AI applications, over HTTP."""

__version__ = "0.1.0"
