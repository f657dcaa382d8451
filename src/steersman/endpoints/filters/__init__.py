"""The filters that every request passes, one per file. server.handler_chain has their order."""
