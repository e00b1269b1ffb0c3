"""The local web page of a workspace: `loki-mem ui`.

`server.py` puts the application together, `security.py` decides who may ask, `page.py` answers a
request with HTML or JSON, and `pages/` has one module for each page.
"""
