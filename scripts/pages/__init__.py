"""What `make docs` needs beside MkDocs: links, equations, lists, the gallery, notebooks, the API."""
