"""The filters every request goes through, one a file. Their order stands in server.handler_chain."""
