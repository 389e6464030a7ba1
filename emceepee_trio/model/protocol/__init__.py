"""What MCP says, whoever says it: ``eras`` puts what one era says into the words of the other,
``levels`` are those of log messages, ``apps`` what servers show to people.
"""
