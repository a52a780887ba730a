"""The MCP server: the documents as tools, resources and prompts of any client that speaks the Model Context Protocol.

``stdio`` and ``http`` serve it; ``server`` joins the protocol to the tools; ``tools`` names and describes them, ``handlers``
call the service and ``results`` keeps what they give back within its budget. Nothing here is imported before it is needed.
"""
